#include "client/local/run.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "client/api/client.h"
#include "client/local/download.h"
#include "client/local/local_cluster.h"
#include "client/local/program_output.h"
#include "client/local/run_folder.h"
#include "client/observe/event_loop.h"
#include "client/observe/show_job.h"
#include "client/render/error_lines.h"
#include "client/render/summary.h"
#include "client/text/names.h"
#include "client/text/text.h"
#include "client/yaml/job_file.h"
#include "coordinator/spec/mesh_checks.h"
#include "coordinator/tape/tape_folder.h"
#include "runtime/process.h"
#include "runtime/program_path.h"

namespace tactus::client {
namespace {

constexpr std::uint32_t kWorkersMax = 256;
constexpr Duration kNodesMax = Seconds(30);

class LocalRun {
 public:
  LocalRun(const RunCommand& command, const Screen& screen, const LocalClusterOptions& options)
      : command_(command),
        screen_(screen),
        options_(options),
        output_(options.folder + "/agent"),
        cluster_(options, loop_) {}

  // Ends with nothing running.
  ExitCode Train(const v1::JobSpec& spec) {
    const ExitCode code = TrainAndReport(spec);
    if (loop_.interrupts() > 0) screen_.Say("ending the processes; Ctrl-C again kills them");
    cluster_.Stop();
    return loop_.interrupts() > 0 ? ExitCode::kInterrupted : code;
  }

  // The run's folder holds the only copy of the job's files.
  bool result_kept() const { return result_kept_; }

 private:
  ExitCode Fail(const absl::Status& status, const std::string& subject = "") {
    return ReportError(status, screen_, subject);
  }

  // The processes here are ours: whatever they lack, it is not the coordinator's answer.
  ExitCode FailLocally(const absl::Status& status) {
    screen_.Say(ErrorLines(status, ""));
    return ExitCode::kGeneric;
  }

  ExitCode TrainAndReport(const v1::JobSpec& spec) {
    if (const absl::Status status = cluster_.Start(); !status.ok()) return FailLocally(status);
    api::Client client({.server = cluster_.addresses().grpc});
    if (const absl::Status status = AwaitNode(client); !status.ok()) {
      return FailLocally(status);
    }
    v1::CreateJobRequest request;
    *request.mutable_spec() = spec;
    const absl::StatusOr<v1::Job> job = client.CreateJob(request);
    if (!job.ok()) return Fail(job.status(), command_.job_file);
    if (!options_.speeds.empty()) screen_.Say(kEmulationNote);

    Followed followed = Show(client, *job);
    if (followed.end == Followed::End::kInterrupted) {
      screen_.Say("cancelling the job and keeping its result; Ctrl-C again discards it");
      if (const absl::Status status = Cancel(client, *job, {.discard = false}); !status.ok()) {
        return Fail(status);
      }
      followed = Show(client, *job);
    }
    switch (followed.end) {
      case Followed::End::kOver:
        return Finish(client, followed.job);
      case Followed::End::kInterrupted: {
        const absl::Status status = Cancel(client, *job, {.discard = true});
        return status.ok() ? ExitCode::kInterrupted : Fail(status);
      }
      case Followed::End::kStopped:
        return FailLocally(cluster_.Check());
      case Followed::End::kLost:
        break;
    }
    return Fail(followed.status);
  }

  // The agent has registered all devices. Says where the page and the metrics are.
  absl::Status AwaitNode(api::Client& client) {
    absl::Status status;
    std::string agent_metrics;
    const auto done = [&] {
      status = cluster_.Check();
      if (!status.ok()) return true;
      const absl::StatusOr<v1::ListNodesResponse> nodes = client.ListAllNodes();
      if (!nodes.ok() || nodes->nodes().empty()) return false;
      agent_metrics = nodes->nodes(0).metrics_address();
      return nodes->nodes(0).connected() &&
             nodes->nodes(0).devices_size() == static_cast<int>(options_.workers);
    };
    switch (loop_.RunUntil(done, kNodesMax)) {
      case EventLoop::Outcome::kInterrupted:
        return absl::CancelledError("interrupted");
      case EventLoop::Outcome::kTimedOut:
        return absl::DeadlineExceededError("tactus-agent did not register within 30 s: " +
                                           LastLine(options_.folder + "/agent.log"));
      case EventLoop::Outcome::kDone:
        break;
    }
    if (!status.ok()) return status;
    const std::string& page = cluster_.addresses().metrics;
    if (!page.empty()) screen_.Say("status page: http://" + Printable(page) + "/");
    if (!page.empty()) SayMetrics("coordinator", page);
    if (!agent_metrics.empty()) SayMetrics("agent", agent_metrics);
    return status;
  }

  void SayMetrics(const std::string& who, const std::string& address) {
    screen_.Say(who + " metrics: http://" + Printable(address) + "/metrics");
  }

  // Of programs of the user's, who wants to see what they say.
  void ShowOutput(bool all) {
    if (!options_.programs || command_.json) return;
    const std::string lines = output_.TakeLines(all);
    if (lines.empty()) return;
    // In the place of the line that is drawn anew.
    screen_.Print((screen_.is_terminal() ? "\r\x1b[K" : "") + lines);
  }

  Followed Show(api::Client& client, const v1::Job& job) {
    return ShowJob(client, loop_, screen_,
                   {.name = job.name(), .json = command_.json, .stop = [this] {
                      ShowOutput(false);
                      return !cluster_.Check().ok();
                    }});
  }

  struct CancelOptions {
    bool discard = false;
  };

  static absl::Status Cancel(api::Client& client, const v1::Job& job,
                             const CancelOptions& options) {
    v1::CancelJobRequest request;
    request.set_name(job.name());
    request.set_discard(options.discard);
    return client.CancelJob(request).status();
  }

  // followed: as the watch has it, which is without its snapshots.
  ExitCode Finish(api::Client& client, const v1::Job& followed) {
    const absl::StatusOr<v1::Job> job = client.GetJob(followed.name());
    const absl::StatusOr<std::vector<std::string>> paths =
        job.ok() ? Download(client, *job) : job.status();
    result_kept_ = !paths.ok();
    if (!paths.ok()) screen_.Say(ErrorLines(paths.status(), ""));
    ShowOutput(true);
    const ExitCode code = ReportEnd(followed, screen_, command_.job_file);
    if (!paths.ok() && code == ExitCode::kOk) {
      return IsOfLocalFile(paths.status()) ? ExitCode::kFile : ExitCode::kGeneric;
    }
    if (!paths.ok()) return code;
    if (!job->has_result()) {
      if (!paths->empty()) screen_.Say("snapshots: " + ResultFolder() + "/snapshots");
    } else if (command_.json) {
      for (const std::string& path : *paths) screen_.Say("result: " + path);
    } else {
      screen_.Print("\n" + Summary(*job, *paths));
    }
    return code;
  }

  std::string ResultFolder() const {
    const std::string folder =
        command_.output_folder.empty() ? options_.folder + "/result" : command_.output_folder;
    return std::filesystem::absolute(folder).string();
  }

  // No files of a job that has none.
  absl::StatusOr<std::vector<std::string>> Download(api::Client& client, const v1::Job& job) const {
    if (job.result().artifacts().empty() && job.snapshots().empty()) {
      return std::vector<std::string>();
    }
    if (!command_.overwrite) return DownloadResult(client, job, ResultFolder());
    // The former result goes when all of the new one is here.
    const NewResult fresh(ResultFolder());
    absl::StatusOr<std::vector<std::string>> paths = DownloadResult(client, job, fresh.folder());
    if (!paths.ok()) return paths;
    if (const absl::Status taken = OfLocalFile(fresh.Take()); !taken.ok()) return taken;
    for (std::string& path : *paths) path.replace(0, fresh.folder().size(), ResultFolder());
    return paths;
  }

  const RunCommand& command_;
  const Screen& screen_;
  const LocalClusterOptions options_;
  ProgramOutput output_;
  bool result_kept_ = false;  // it could not be brought out of the run's folder
  EventLoop loop_{{SIGINT, SIGTERM, SIGHUP, SIGPIPE}};
  LocalCluster cluster_;
};

absl::Status Contradiction(const std::string& field, std::uint32_t value, std::uint32_t count) {
  return absl::InvalidArgumentError(field + ": the job file says " + std::to_string(value) +
                                    ", but " + std::to_string(count) + " workers are asked for");
}

absl::Status Of(const std::string& flag, const absl::Status& unwritable) {
  return OfLocalFile(
      absl::FailedPreconditionError(flag + ": " + std::string(unwritable.message())));
}

// Where a file that is asked for cannot be put, is found out before training, not after.
absl::Status CheckPlaces(const RunCommand& command) {
  if (!command.output_folder.empty()) {
    const absl::Status writable = runtime::MakeWritableFolder(command.output_folder);
    if (!writable.ok()) return Of("--output", writable);
    const std::vector<std::string> former = FormerResult(command.output_folder);
    if (!former.empty() && !command.overwrite) {
      return absl::AlreadyExistsError("--output: " + command.output_folder +
                                      " has the result of a former run (" + JoinNames(former) +
                                      "); allowed is another folder, or --overwrite");
    }
  }
  if (command.tape.empty()) return absl::OkStatus();
  if (std::filesystem::is_directory(command.tape)) {
    return absl::InvalidArgumentError("--tape: found a folder, allowed is the path of a file");
  }
  const std::filesystem::path folder = std::filesystem::absolute(command.tape).parent_path();
  const absl::Status writable = runtime::MakeWritableFolder(folder.string());
  return writable.ok() ? absl::OkStatus() : Of("--tape", writable);
}

// Requires: the coordinator whose state is in `state_folder` has ended.
absl::Status CopyTape(const std::string& state_folder, const std::string& path) {
  const absl::StatusOr<std::string> tape = tape::NewestTape(state_folder + "/tapes");
  if (!tape.ok()) return tape.status();
  std::error_code error;
  std::filesystem::copy_file(*tape, path, std::filesystem::copy_options::overwrite_existing, error);
  if (error) return absl::InternalError(path + ": cannot be written: " + error.message());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::uint32_t> FitWorkers(const RunCommand& command, v1::JobSpec* spec) {
  v1::Workers* workers = spec->mutable_workers();
  const auto speeds = static_cast<std::uint32_t>(command.speeds.size());
  if (command.workers > 0 && speeds > 0 && command.workers != speeds) {
    return absl::InvalidArgumentError("--speeds: found " + std::to_string(speeds) +
                                      " speeds, allowed is one for each of " +
                                      std::to_string(command.workers) + " workers");
  }
  if (workers->device() == v1::DEVICE_KIND_CUDA) {
    return absl::InvalidArgumentError(
        "workers.device: found cuda, but tactus run makes cpu workers");
  }
  const std::uint32_t least =
      std::max({2u, workers->min(), spec::DevicesOfReplica(*spec)});  // of one replica
  const std::uint32_t fallback = workers->has_max() ? workers->max() : least;
  const std::uint32_t count = command.workers > 0 ? command.workers
                              : speeds > 0        ? speeds
                                                  : fallback;
  if (count < 1 || count > kWorkersMax) {
    return absl::InvalidArgumentError("workers: found " + std::to_string(count) +
                                      ", allowed is 1 to " + std::to_string(kWorkersMax) +
                                      " on one machine");
  }
  if (workers->has_min() && workers->min() > count)
    return Contradiction("workers.min", workers->min(), count);
  if (workers->has_max() && workers->max() < count)
    return Contradiction("workers.max", workers->max(), count);
  if (!workers->has_min()) workers->set_min(count);
  if (!workers->has_max()) workers->set_max(count);
  return count;
}

// "train" of python3 train.py, as a job may be named.
std::string NameOfProgram(const std::vector<std::string>& words) {
  const auto script =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  const std::string stem =
      std::filesystem::path(script == words.end() ? words.front() : *script).stem().string();
  std::string name;
  for (const char c : stem) {
    const char low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool letter = low >= 'a' && low <= 'z';
    const bool right = letter || (!name.empty() && low >= '0' && low <= '9');
    if (right) name += low;
    if (!right && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min<std::size_t>(name.size(), 63));
  return name.empty() ? "program" : name;
}

// The job file, where there is one, with the program that the words name.
JobFile ReadJob(const RunCommand& command) {
  JobFile file = command.job_file.empty() ? ParseJobFile("{}", command.overrides, "")
                                          : ReadJobFile(command.job_file, command.overrides);
  if (command.program.empty()) return file;
  v1::Program& program = *file.spec.mutable_program();
  program.mutable_command()->Assign(command.program.begin(), command.program.end());
  program.set_directory(std::filesystem::current_path().string());
  if (file.spec.name().empty()) file.spec.set_name(NameOfProgram(command.program));
  return file;
}

// What none of the workers could begin with is said at once, not after their retries; what is
// missing, the coordinator says.
absl::Status CheckProgram(const v1::JobSpec& spec) {
  const v1::Program& program = spec.program();
  const std::string& folder = program.directory();
  if (program.command().empty() || folder.empty()) return absl::OkStatus();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError("program.directory: '" + folder +
                                      "' is no folder on this node");
  }
  const char* const path = std::getenv("PATH");
  if (runtime::FindProgram(program.command(0),
                           {folder, path == nullptr ? runtime::kUsualPath : path})) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("program.command: '" + program.command(0) +
                                    "' is no program that can be run on this node");
}

ExitCode Run(const RunCommand& command, const Surroundings& surroundings, const Screen& screen) {
  JobFile file = ReadJob(command);
  const std::string subject = command.job_file.empty() ? "" : command.job_file + ": ";
  for (const std::string& error : file.errors) screen.Say(subject + error);
  if (!file.errors.empty()) return ExitCode::kUsage;
  const absl::StatusOr<std::uint32_t> workers = FitWorkers(command, &file.spec);
  if (!workers.ok()) {
    screen.Say(std::string(workers.status().message()));
    return ExitCode::kUsage;
  }
  if (const absl::Status program = CheckProgram(file.spec); !program.ok()) {
    screen.Say(subject + std::string(program.message()));
    return ExitCodeOf(program);
  }
  if (const absl::Status places = CheckPlaces(command); !places.ok()) {
    screen.Say(std::string(places.message()));
    return ExitCodeOf(places);
  }
  const absl::StatusOr<RunFolder> folder =
      MakeRunFolder(surroundings.folders.state, file.spec.name());
  if (!folder.ok()) {
    screen.Say(std::string(folder.status().message()));
    return ExitCode::kFile;
  }
  LocalRun run(command, screen,
               {.binary_folder = surroundings.binary_folder,
                .folder = folder->path,
                .workers = *workers,
                .speeds = command.speeds,
                .programs = file.spec.has_program()});
  ExitCode code = run.Train(file.spec);
  if (!command.tape.empty()) {
    const absl::Status copied = CopyTape(folder->path + "/coordinator", command.tape);
    if (!copied.ok()) screen.Say("--tape: " + std::string(copied.message()));
    if (!copied.ok() && code == ExitCode::kOk) code = ExitCode::kFile;
  }
  const bool failed =
      code != ExitCode::kOk && code != ExitCode::kUsage && code != ExitCode::kInterrupted;
  const bool keep = command.keep || run.result_kept();
  if (!keep) CleanRunFolder(folder->path, failed ? RunRemains::kLogs : RunRemains::kResult);
  if (keep) {
    screen.Say("kept: " + folder->path + "; tactus clean removes it");
  } else if (failed && std::filesystem::exists(folder->path)) {
    screen.Say("logs: " + folder->path + "; tactus clean removes them");
  }
  return code;
}

}  // namespace tactus::client
