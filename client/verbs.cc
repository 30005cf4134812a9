#include "client/verbs.h"

#include <signal.h>

#include "client/download.h"
#include "client/job_file.h"
#include "client/progress_view.h"
#include "client/show_job.h"
#include "client/story.h"
#include "client/tables.h"
#include "client/text.h"

namespace tactus::client {
namespace {

constexpr std::size_t kDecisionsToldMax = 100'000;

ExitCode Fail(const absl::Status& status, const Screen& screen, const std::string& subject = "") {
  screen.Say(ErrorLines(status, subject));
  return ExitCodeOf(status);
}

template <typename Message>
ExitCode Show(const absl::StatusOr<Message>& answer, OutputFormat format, const Screen& screen) {
  if (!answer.ok()) return Fail(answer.status(), screen);
  screen.Print(Render(*answer, format));
  return ExitCode::kOk;
}

ExitCode FollowToEnd(const ShowJobOptions& options, Connection& connection, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM});
  const Followed followed = ShowJob(connection, loop, screen, options);
  switch (followed.end) {
    case Followed::End::kOver:
      return ReportEnd(followed.job, screen, "");
    case Followed::End::kInterrupted:
      screen.Say("detached; the job goes on. Again: tactus watch " + ShortName(options.name));
      return ExitCode::kInterrupted;
    case Followed::End::kStopped:
    case Followed::End::kLost:
      break;
  }
  return Fail(followed.status, screen);
}

}  // namespace

ExitCode Submit(const SubmitCommand& command, Connection& connection, const Screen& screen) {
  const JobFile file = ReadJobFile(command.job_file, command.overrides);
  for (const std::string& error : file.errors) screen.Say(command.job_file + ": " + error);
  if (!file.errors.empty()) return ExitCode::kUsage;

  v1::CreateJobRequest request;
  *request.mutable_spec() = file.spec;
  request.set_validate_only(command.dry_run);
  const absl::StatusOr<v1::Job> job = connection.CreateJob(request);
  if (!job.ok()) return Fail(job.status(), screen, command.job_file);

  if (command.dry_run) screen.Say(command.job_file + ": valid; nothing was submitted");
  const bool follow = command.follow && !command.dry_run;
  if (follow && command.output == OutputFormat::kName) {
    screen.Say("job " + Printable(ShortName(job->name())) + " submitted");
  } else if (!follow && !(command.dry_run && command.output == OutputFormat::kName)) {
    screen.Print(Render(*job, command.output));
  }
  if (!follow) return ExitCode::kOk;
  return FollowToEnd({.name = job->name(), .json = command.output == OutputFormat::kJson},
                     connection, screen);
}

ExitCode Get(const GetCommand& command, Connection& connection, const Screen& screen) {
  switch (command.noun) {
    case GetCommand::Noun::kJobs:
      return Show(connection.ListJobs(command.count_max), command.output, screen);
    case GetCommand::Noun::kJob:
      return Show(connection.GetJob(command.name), command.output, screen);
    case GetCommand::Noun::kNodes:
      return Show(connection.ListNodes(), command.output, screen);
    case GetCommand::Noun::kDecisions:
      return Show(connection.ListDecisions(command.name, command.count_max), command.output,
                  screen);
    case GetCommand::Noun::kRounds:
      break;
  }
  return Show(connection.ListRounds(command.name, command.count_max), command.output, screen);
}

ExitCode Explain(const ExplainCommand& command, Connection& connection, const Screen& screen) {
  const auto decisions = connection.ListDecisions(command.name, kDecisionsToldMax);
  if (command.output != OutputFormat::kTable) return Show(decisions, command.output, screen);
  if (!decisions.ok()) return Fail(decisions.status(), screen);
  const absl::StatusOr<v1::Job> job = connection.GetJob(command.name);
  if (!job.ok()) return Fail(job.status(), screen);
  screen.Print(Story(*job, *decisions, screen.columns()));
  return ExitCode::kOk;
}

ExitCode Watch(const WatchCommand& command, Connection& connection, const Screen& screen) {
  return FollowToEnd({.name = command.name, .json = command.json}, connection, screen);
}

ExitCode Cancel(const CancelCommand& command, Connection& connection, const Screen& screen) {
  v1::CancelJobRequest request;
  request.set_name(command.name);
  request.set_discard(command.discard);
  const absl::StatusOr<v1::Job> job = connection.CancelJob(request);
  if (!job.ok()) return Fail(job.status(), screen);
  screen.Say("job " + Printable(ShortName(job->name())) + " is " + StateName(job->state()));
  return ExitCode::kOk;
}

ExitCode Download(const DownloadCommand& command, Connection& connection, const Screen& screen) {
  const absl::StatusOr<v1::Job> job = connection.GetJob(command.name);
  if (!job.ok()) return Fail(job.status(), screen);
  const std::string folder = command.folder.empty() ? ShortName(job->name()) : command.folder;
  const auto paths = DownloadResult(connection, *job, folder);
  if (!paths.ok()) return Fail(paths.status(), screen);
  for (const std::string& path : *paths) screen.Print(path + "\n");
  return ExitCode::kOk;
}

}  // namespace tactus::client
