// The verbs that change one job, or wait for it.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "client/api/cancellation.h"
#include "client/observe/event_loop.h"
#include "client/observe/follow.h"
#include "client/observe/show_job.h"
#include "client/render/error_lines.h"
#include "client/render/log_text.h"
#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "client/verbs/job_update.h"
#include "client/verbs/verbs.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

ExitCode SayState(const absl::StatusOr<v1::Job>& job, const Screen& screen) {
  if (!job.ok()) return ReportError(job.status(), screen);
  screen.Say("job " + Printable(ShortName(job->name())) + " is " + StateName(job->state()));
  return ExitCode::kOk;
}

google::protobuf::Duration ToProto(Duration duration) {
  google::protobuf::Duration proto;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  proto.set_seconds(seconds.count());
  proto.set_nanos(static_cast<std::int32_t>((duration - seconds).count()));
  return proto;
}

// Once more when somebody else changed the job between looking and changing.
absl::StatusOr<v1::Job> TryUpdate(const UpdateCommand& command, api::Client& client,
                                  const Screen& screen, bool* usage) {
  constexpr int kAttemptsMax = 5;
  for (int attempt = 1;; ++attempt) {
    v1::Job job;
    if (NeedsJob(command)) {
      absl::StatusOr<v1::Job> found = client.GetJob(command.name);
      if (!found.ok()) return found.status();
      job = *std::move(found);
    }
    const JobUpdate update = BuildUpdate(command, job);
    screen.Say(update.errors);
    if (!update.errors.empty()) {
      *usage = true;
      return job;
    }
    absl::StatusOr<v1::Job> changed = client.UpdateJob(update.request);
    const bool theirs = command.etag.empty() && absl::IsAborted(changed.status());
    if (!theirs || attempt == kAttemptsMax) return changed;
  }
}

}  // namespace

ExitCode Wait(const WaitCommand& command, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM});
  const Instant deadline = runtime::Now() + command.timeout.value_or(EventLoop::kForever);
  v1::JobState seen = v1::JOB_STATE_UNSPECIFIED;
  const auto stop = [&] { return seen == command.state || runtime::Now() >= deadline; };
  const Followed followed = Follow(client, loop, command.name,
                                   {.event =
                                        [&](const v1::JobEvent& event) {
                                          if (event.has_job()) seen = event.job().state();
                                        },
                                    .say = [&](const std::string& text) { screen.Say(text); },
                                    .stop = stop});
  if (followed.end == Followed::End::kInterrupted) return ExitCode::kInterrupted;
  if (followed.end == Followed::End::kLost) return ReportError(followed.status, screen);
  if (seen == command.state) return ExitCode::kOk;
  if (followed.end == Followed::End::kOver) {
    ReportEnd(followed.job, screen, "");
    screen.Say("it did not become " + StateName(command.state));
    return ExitCode::kJobFailed;
  }
  screen.Say("job " + Printable(ShortName(command.name)) + " is " + StateName(seen) + ", not yet " +
             StateName(command.state));
  return ExitCode::kTimedOut;
}

ExitCode Logs(const LogsCommand& command, api::Client& client, const Screen& screen) {
  v1::StreamLogsRequest request;
  request.set_name(command.name);
  request.mutable_ranks()->Add(command.ranks.begin(), command.ranks.end());
  request.set_follow(command.follow);
  request.set_tail_lines(command.tail);
  LogText text(command.ranks.size() != 1);
  EventLoop loop({SIGINT, SIGTERM});
  api::Cancellation cancellation;
  std::atomic<bool> done = false;
  absl::Status status;
  // The main thread waits for signals meanwhile; it reads `status` after the join.
  std::thread reader([&] {
    status = client.StreamLogs(
        request,
        [&](const v1::LogEntry& entry) {
          if (entry.skipped_bytes() > 0) {
            screen.Say("rank " + std::to_string(entry.rank()) + ": " +
                       FormatBytes(entry.skipped_bytes()) + " are gone here");
          }
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
  return status.ok() ? ExitCode::kOk : ReportError(status, screen);
}

ExitCode Update(const UpdateCommand& command, api::Client& client, const Screen& screen) {
  bool usage = false;
  const absl::StatusOr<v1::Job> job = TryUpdate(command, client, screen, &usage);
  if (usage) return ExitCode::kUsage;
  if (!job.ok()) return ReportError(job.status(), screen);
  screen.Say("job " + Printable(ShortName(job->name())) +
             (command.dry_run ? " would be updated; nothing was changed" : " updated"));
  return ExitCode::kOk;
}

ExitCode Cancel(const CancelCommand& command, api::Client& client, const Screen& screen) {
  v1::CancelJobRequest request;
  request.set_name(command.name);
  request.set_discard(command.discard);
  if (command.grace) *request.mutable_grace() = ToProto(*command.grace);
  return SayState(client.CancelJob(request), screen);
}

ExitCode Pause(const PauseCommand& command, api::Client& client, const Screen& screen) {
  return SayState(client.PauseJob(command.name), screen);
}

ExitCode Resume(const ResumeCommand& command, api::Client& client, const Screen& screen) {
  return SayState(client.ResumeJob(command.name), screen);
}

ExitCode Delete(const DeleteCommand& command, api::Client& client, const Screen& screen) {
  if (!command.yes) {
    const std::string what = command.names.size() == 1
                                 ? "job " + Printable(command.names.front())
                                 : std::to_string(command.names.size()) + " jobs";
    const std::optional<bool> sure =
        screen.Ask("delete " + what + " with history, logs and files?");
    if (!sure) {
      screen.Say("delete: there is no terminal to ask on; --yes deletes without asking");
      return ExitCode::kUsage;
    }
    if (!*sure) {
      screen.Say("nothing was deleted");
      return ExitCode::kInterrupted;
    }
  }
  ExitCode code = ExitCode::kOk;
  for (const std::string& name : command.names) {
    const absl::Status status = client.DeleteJob(name);
    if (status.ok()) {
      screen.Say("job " + Printable(ShortName(name)) + " deleted");
    } else {
      const ExitCode failed = ReportError(status, screen);
      if (code == ExitCode::kOk) code = failed;
    }
  }
  return code;
}

}  // namespace tactus::client
