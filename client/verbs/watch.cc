// `tactus watch`.
#include "client/verbs/answers.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class WatchVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "watch", "Show a job's progress until it ends; Ctrl-C detaches");
    AddJob(verb, &name_);
    AddLines(verb, &lines_);
  }
  ExitCode Run(const Means& means) override {
    return FollowToEnd({.name = name_, .json = lines_ == "json"}, *means.client, means.screen);
  }

 private:
  std::string name_;
  std::string lines_ = "text";
};

}  // namespace

std::unique_ptr<Verb> MakeWatch() { return std::make_unique<WatchVerb>(); }

}  // namespace tactus::client
