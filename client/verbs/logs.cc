// `tactus logs`.
#include <signal.h>

#include <atomic>
#include <limits>
#include <thread>

#include "client/api/cancellation.h"
#include "client/observe/event_loop.h"
#include "client/render/error_lines.h"
#include "client/render/log_text.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class LogsVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "logs", "Print what a job's workers wrote; Ctrl-C detaches");
    AddJob(verb, &name_);
    AddRepeated(verb, "--rank", &ranks_, "Only of this worker; may be given again. Default: all")
        ->check(WholeNumber(0, 65535));
    verb->add_flag("-f,--follow", follow_, "Go on with what comes until the job is over");
    verb->add_option("--tail", tail_, "Begin with so many of each worker's last lines")
        ->check(WholeNumber(1, std::numeric_limits<std::uint32_t>::max()));
  }
  ExitCode Run(const Means& means) override {
    const Screen& screen = means.screen;
    v1::StreamLogsRequest request;
    request.set_name(name_);
    request.mutable_ranks()->Add(ranks_.begin(), ranks_.end());
    request.set_follow(follow_);
    request.set_tail_lines(tail_);
    LogText text(ranks_.size() != 1);
    EventLoop loop({SIGINT, SIGTERM});
    api::Cancellation cancellation;
    std::atomic<bool> done = false;
    bool any = false;
    absl::Status status;
    // The main thread waits for signals meanwhile; it reads `any` and `status` after the join.
    std::thread reader([&] {
      status = means.client->StreamLogs(
          request,
          [&](const v1::LogEntry& entry) {
            if (entry.skipped_bytes() > 0) {
              screen.Say("rank " + std::to_string(entry.rank()) + ": " +
                         FormatBytes(entry.skipped_bytes()) + " are gone here");
            }
            any = true;
            screen.Print(text.Show(entry));
            return true;
          },
          &cancellation);
      done = true;
    });
    const auto outcome = loop.RunUntil([&] { return done.load(); }, EventLoop::kForever);
    if (outcome == EventLoop::Outcome::kInterrupted) cancellation.Cancel();
    reader.join();
    if (outcome == EventLoop::Outcome::kInterrupted) {
      screen.Say("detached; the job goes on");
      return ExitCode::kInterrupted;
    }
    if (!status.ok()) return ReportError(status, screen);
    if (!any) screen.Say("job " + Printable(ShortName(name_)) + ": " + NothingText());
    return ExitCode::kOk;
  }

 private:
  // Workers that are well write nothing.
  std::string NothingText() const {
    if (ranks_.empty()) return "its workers have written nothing";
    return (ranks_.size() == 1 ? "rank " : "ranks ") + JoinNumbers(ranks_) +
           (ranks_.size() == 1 ? " has" : " have") + " written nothing, or not been there";
  }

  std::string name_;
  std::vector<std::uint32_t> ranks_;  // empty: all
  bool follow_ = false;
  std::uint32_t tail_ = 0;  // 0: all that is kept
};

}  // namespace

std::unique_ptr<Verb> MakeLogs() { return std::make_unique<LogsVerb>(); }

}  // namespace tactus::client
