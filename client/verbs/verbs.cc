#include "client/verbs/verbs.h"

#include <signal.h>

#include "client/local/download.h"
#include "client/observe/show_job.h"
#include "client/render/describe.h"
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/story.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/job_models.h"
#include "client/yaml/job_file.h"

namespace tactus::client {
namespace {

constexpr std::size_t kDecisionsToldMax = 100'000;

ExitCode FollowToEnd(const ShowJobOptions& options, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM});
  const Followed followed = ShowJob(client, loop, screen, options);
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
  return ReportError(followed.status, screen);
}

// The file and what the command line adds to it. False: what is wrong was said.
bool MakeRequest(const SubmitCommand& command, const Screen& screen,
                 v1::CreateJobRequest* request) {
  const JobFile file = ReadJobFile(command.job_file, command.overrides);
  for (const std::string& error : file.errors) screen.Say(command.job_file + ": " + error);
  if (!file.errors.empty()) return false;
  *request->mutable_spec() = file.spec;
  if (command.priority) request->mutable_spec()->set_priority(*command.priority);
  for (const auto& [key, value] : command.labels) (*request->mutable_labels())[key] = value;
  request->set_validate_only(command.dry_run);
  return true;
}

}  // namespace

ExitCode Submit(const SubmitCommand& command, api::Client& client, const Screen& screen) {
  v1::CreateJobRequest request;
  if (!MakeRequest(command, screen, &request)) return ExitCode::kUsage;
  if (!command.dry_run) {
    const absl::Status uploaded = UploadModels(client, screen, request.mutable_spec());
    if (!uploaded.ok()) return ReportError(uploaded, screen, command.job_file);
  }
  const absl::StatusOr<v1::Job> job = client.CreateJob(request);
  if (!job.ok()) return ReportError(job.status(), screen, command.job_file);

  if (command.dry_run) screen.Say(command.job_file + ": valid; nothing was submitted");
  const bool follow = command.follow && !command.dry_run;
  if (follow && command.output == OutputFormat::kName) {
    screen.Say("job " + Printable(ShortName(job->name())) + " submitted");
  } else if (!follow && !(command.dry_run && command.output == OutputFormat::kName)) {
    screen.Print(Render(*job, {command.output, screen.has_colour()}));
  }
  if (!follow) return ExitCode::kOk;
  return FollowToEnd({.name = job->name(), .json = command.output == OutputFormat::kJson}, client,
                     screen);
}

ExitCode Describe(const DescribeCommand& command, api::Client& client, const Screen& screen) {
  if (command.noun == DescribeCommand::Noun::kNode) {
    const absl::StatusOr<v1::Node> node = client.GetNode(command.name);
    if (!node.ok()) return ReportError(node.status(), screen);
    screen.Print(Describe(*node, screen.has_colour()));
    return ExitCode::kOk;
  }
  const absl::StatusOr<v1::Job> job = client.GetJob(command.name);
  if (!job.ok()) return ReportError(job.status(), screen);
  screen.Print(Describe(*job, screen.has_colour()));
  return ExitCode::kOk;
}

ExitCode Explain(const ExplainCommand& command, api::Client& client, const Screen& screen) {
  const auto decisions = client.ListAllDecisions(command.name, kDecisionsToldMax);
  if (!decisions.ok()) return ReportError(decisions.status(), screen);
  if (command.output != OutputFormat::kTable) {
    screen.Print(Render(*decisions, command.output));
    return ExitCode::kOk;
  }
  const absl::StatusOr<v1::Job> job = client.GetJob(command.name);
  if (!job.ok()) return ReportError(job.status(), screen);
  screen.Print(Story(*job, *decisions, screen.columns()));
  return ExitCode::kOk;
}

ExitCode Watch(const WatchCommand& command, api::Client& client, const Screen& screen) {
  return FollowToEnd({.name = command.name, .json = command.json}, client, screen);
}

ExitCode Download(const DownloadCommand& command, api::Client& client, const Screen& screen) {
  const absl::StatusOr<v1::Job> job = client.GetJob(command.name);
  if (!job.ok()) return ReportError(job.status(), screen);
  const std::string folder = command.folder.empty() ? ShortName(job->name()) : command.folder;
  const auto paths = DownloadResult(client, *job, folder);
  if (!paths.ok()) return ReportError(paths.status(), screen);
  for (const std::string& path : *paths) screen.Print(path + "\n");
  return ExitCode::kOk;
}

}  // namespace tactus::client
