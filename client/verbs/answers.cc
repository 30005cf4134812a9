#include "client/verbs/answers.h"

#include <signal.h>

#include <type_traits>

#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/summary.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

template <typename Resource>
class CallVerb : public Verb {
 public:
  using Call = absl::StatusOr<Resource> (api::Client::*)(const std::string& name);
  CallVerb(const std::string& word, const std::string& help, Call call)
      : word_(word), help_(help), call_(call) {}

  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, word_, help_);
    std::is_same_v<Resource, v1::Job> ? AddJob(verb, &name_) : AddNode(verb, &name_);
  }
  ExitCode Run(const Means& means) override {
    return SayState((means.client->*call_)(name_), means.screen);
  }

 private:
  const std::string word_;
  const std::string help_;
  const Call call_;
  std::string name_;
};

// What a job that is over has come to, and how to get at it.
void SumUp(const v1::Job& job, const Screen& screen) {
  if (!job.has_result()) return;
  screen.Print("\n" + Summary(job, {}));
  screen.Say("its files: tactus download " + Printable(ShortName(job.name())));
}

}  // namespace

std::unique_ptr<Verb> MakeCall(const std::string& word, const std::string& help,
                               absl::StatusOr<v1::Job> (api::Client::*call)(const std::string&)) {
  return std::make_unique<CallVerb<v1::Job>>(word, help, call);
}

std::unique_ptr<Verb> MakeCall(const std::string& word, const std::string& help,
                               absl::StatusOr<v1::Node> (api::Client::*call)(const std::string&)) {
  return std::make_unique<CallVerb<v1::Node>>(word, help, call);
}

ExitCode SayState(const absl::StatusOr<v1::Job>& job, const Screen& screen) {
  if (!job.ok()) return ReportError(job.status(), screen);
  screen.Say("job " + Printable(ShortName(job->name())) + " is " + StateName(job->state()));
  return ExitCode::kOk;
}

ExitCode SayState(const absl::StatusOr<v1::Node>& node, const Screen& screen) {
  if (!node.ok()) return ReportError(node.status(), screen);
  screen.Say("node " + Printable(ShortName(node->name())) + " is " + NodeStatus(*node));
  return ExitCode::kOk;
}

ExitCode FollowToEnd(const ShowJobOptions& options, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM});
  const Followed followed = ShowJob(client, loop, screen, options);
  switch (followed.end) {
    case Followed::End::kOver:
      if (!options.json) SumUp(followed.job, screen);
      return ReportEnd(followed.job, screen, "");
    case Followed::End::kInterrupted:
      screen.Say("detached; the job goes on. Again: tactus watch " + ShortName(options.name));
      return ExitCode::kInterrupted;
    case Followed::End::kStopped:
    case Followed::End::kLost:
      break;
  }
  return ReportError(followed.status, screen);
}

bool RefuseTerminal(const Screen& screen) {
  if (!screen.is_for_a_person()) return false;
  screen.Say("standard output is a terminal; allowed is a file: ... > FILE");
  return true;
}

}  // namespace tactus::client
