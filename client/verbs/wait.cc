// `tactus wait`.
#include <signal.h>

#include "absl/strings/ascii.h"
#include "client/observe/event_loop.h"
#include "client/observe/follow.h"
#include "client/observe/show_job.h"
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/names.h"
#include "client/text/text.h"
#include "client/verbs/words.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

// The state of "state=SUCCEEDED"; nothing for another text.
std::optional<v1::JobState> ParseCondition(const std::string& text) {
  if (!text.starts_with("state=")) return std::nullopt;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  const bool known =
      v1::JobState_Parse("JOB_STATE_" + absl::AsciiStrToUpper(text.substr(6)), &state);
  if (!known || state == v1::JOB_STATE_UNSPECIFIED) return std::nullopt;
  return state;
}

std::string CheckCondition(const std::string& text) {
  if (ParseCondition(text)) return "";
  return "found \"" + Printable(text) + "\", allowed is state=STATE with one of: " +
         absl::AsciiStrToUpper(JoinNames(EnumValueNames(*v1::JobState_descriptor())));
}

class WaitVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "wait",
                "Wait until a job has a state. Ends with 0 when it has, 7 when the time is over, 8 "
                "when the job ended otherwise");
    AddJob(verb, &name_);
    verb->add_option("--for", condition_, "What is waited for: state=STATE")
        ->check(CLI::Validator(CheckCondition, "CONDITION"))
        ->capture_default_str();
    verb->add_option("--timeout", timeout_, "At most so long, such as 30m. Default: for ever")
        ->check(DurationText());
    verb->add_option("-o,--output", output_,
                     "Print the job as it is then, as json or yaml. Default: nothing")
        ->check(CLI::IsMember({"json", "yaml"}));
  }
  ExitCode Run(const Means& means) override {
    api::Client& client = *means.client;
    const Screen& screen = means.screen;
    const v1::JobState wanted = ParseCondition(condition_).value_or(v1::JOB_STATE_SUCCEEDED);
    EventLoop loop({SIGINT, SIGTERM});
    const Instant deadline = runtime::Now() + GivenDuration(timeout_).value_or(EventLoop::kForever);
    v1::Job seen;
    const auto stop = [&] { return seen.state() == wanted || runtime::Now() >= deadline; };
    const Followed followed = Follow(client, loop, name_,
                                     {.event =
                                          [&](const v1::JobEvent& event) {
                                            if (event.has_job()) seen = event.job();
                                          },
                                      .say = [&](const std::string& text) { screen.Say(text); },
                                      .stop = stop});
    if (followed.end == Followed::End::kInterrupted) return ExitCode::kInterrupted;
    if (followed.end == Followed::End::kLost) return ReportError(followed.status, screen);
    if (!output_.empty()) {
      // Events have no lists of snapshots and the like. The time may be over with nobody there.
      const absl::StatusOr<v1::Job> whole = client.GetJob(name_);
      if (!whole.ok()) screen.Say("without its lists: " + std::string(whole.status().message()));
      screen.Print(Render(whole.ok() ? *whole : seen, ParseOutputFormat(output_)));
    }
    if (seen.state() == wanted) return ExitCode::kOk;
    if (followed.end == Followed::End::kOver) {
      ReportEnd(followed.job, screen, "");
      screen.Say("it did not become " + StateName(wanted));
      return ExitCode::kJobFailed;
    }
    screen.Say("job " + Printable(ShortName(name_)) + " is " + StateName(seen.state()) +
               ", not yet " + StateName(wanted));
    return ExitCode::kTimedOut;
  }

 private:
  std::string name_;
  std::string condition_ = "state=SUCCEEDED";
  std::string timeout_;
  std::string output_;  // empty: print nothing
};

}  // namespace

std::unique_ptr<Verb> MakeWait() { return std::make_unique<WaitVerb>(); }

}  // namespace tactus::client
