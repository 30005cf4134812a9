// `tactus version`.
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class VersionVerb : public Verb {
 public:
  void Declare(CLI::App& program) override { AddVerb(program, "version", "Print the version"); }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    means.screen.Print("tactus " TACTUS_VERSION "\n");
    return ExitCode::kOk;
  }
};

}  // namespace

std::unique_ptr<Verb> MakeVersion() { return std::make_unique<VersionVerb>(); }

}  // namespace tactus::client
