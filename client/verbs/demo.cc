// `tactus demo`.
#include "client/local/demo.h"

#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class DemoVerb : public CommandVerb<DemoCommand> {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "demo",
                             "Train a first small model on this machine, with equal batches and "
                             "with batches by speed, and compare; needs no file, and leaves none");
    verb->add_option("--seconds", command_.seconds, "Training time of each of the two")
        ->check(WholeNumber(1, 3600))
        ->capture_default_str();
    verb->add_option("--output", command_.output_folder,
                     "Keep job file, text and results in this folder, which is new or empty");
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    return Demo(command_, means.surroundings, means.screen);
  }
};

}  // namespace

std::unique_ptr<Verb> MakeDemo() { return std::make_unique<DemoVerb>(); }

}  // namespace tactus::client
