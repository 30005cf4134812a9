#include "client/ask/simulated_question.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "client/ask/cluster_file.h"
#include "client/ask/cluster_writer.h"
#include "client/ask/curve_file.h"
#include "client/ask/durations.h"
#include "client/ask/learner_source.h"
#include "client/ask/what_if.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/yaml/job_file.h"
#include "client/yaml/message_writer.h"
#include "coordinator/job/wording.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/spec_validation.h"
#include "runtime/process.h"
#include "simulator/random_scenario.h"

namespace tactus::client {
namespace {

constexpr std::size_t kHistoryRoundsMax = 100'000;

// A job on a cluster, checked.
struct Prepared {
  simulator::ClusterModel cluster{};
  sim::v1::Model model{};
  job::JobSettings settings{};
  std::string spec{};  // serialized
  engine::EngineOptions engine{};
  LearnerSource learners;
  std::optional<Duration> checkpoints_every{};  // nothing: auto
};

std::vector<std::string> WithSubject(const std::string& subject,
                                     const std::vector<std::string>& errors) {
  std::vector<std::string> lines;
  for (const std::string& error : errors) lines.push_back(subject + ": " + error);
  return lines;
}

// Devices that the job may take, by the kind that its name begins with.
std::uint64_t FittingDevices(const simulator::ClusterModel& cluster, job::DeviceKind kind) {
  std::uint64_t cpu = 0;
  std::uint64_t cuda = 0;
  for (const simulator::HostModel& host : cluster.hosts) {
    for (const simulator::DeviceModel& device : host.devices) {
      ++(device.name.starts_with("cuda") ? cuda : cpu);
    }
  }
  if (kind == job::DeviceKind::kAny) return cuda + cpu;
  if (kind == job::DeviceKind::kStandard) return cuda > 0 ? cuda : cpu;
  return kind == job::DeviceKind::kCuda ? cuda : cpu;
}

// A job that no device of the cluster fits would wait for ever. Empty: it starts.
std::string TooFewDevices(const simulator::ClusterModel& cluster,
                          const job::JobSettings& settings) {
  const std::uint64_t devices = FittingDevices(cluster, settings.device);
  if (devices >= settings.workers_min) return "";
  return "workers.min: found " + std::to_string(settings.workers_min) + ", the cluster has " +
         job::DeviceCount(devices, settings.device);
}

// Paths stay relative where they are, so that nothing of this machine reaches an output.
JobFile ReadSimulatedJob(const SimulateCommand& command) {
  const FileText file = ReadYamlText(command.job_file, "a job file");
  if (!file.error.empty()) return {.spec = {}, .errors = {file.error}};
  const std::filesystem::path folder = std::filesystem::path(command.job_file).parent_path();
  return ParseJobFile(file.text, command.overrides, folder.string());
}

simulator::Scenario ScenarioOf(const Prepared& prepared, std::uint64_t seed) {
  simulator::Scenario scenario;
  scenario.cluster = prepared.cluster;
  scenario.seed = seed;
  simulator::SimulatedJob job;
  job.settings = prepared.settings;
  job.spec = prepared.spec;
  job.engine = prepared.engine;
  job.learner = prepared.learners.Make(seed);
  job.engine.train_samples = job.learner->train_samples();
  job.parameters = prepared.model.parameters();
  job.backward_share = prepared.model.backward_share();
  job.load_seconds = SecondsOf(prepared.model.load_time());
  job.conclude_seconds = SecondsOf(prepared.model.conclude_time());
  job.checkpoints.every = prepared.checkpoints_every;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

AskedQuestion Refused(std::vector<std::string> errors) { return {.errors = std::move(errors)}; }

std::optional<Duration> CheckpointsEvery(const v1::JobSpec& spec) {
  if (!spec.checkpoints().has_every()) return std::nullopt;
  return Seconds(SecondsOf(spec.checkpoints().every()));
}

// The rules of a job on a cluster, wherever both come from. `subject` is what errors of the
// specification begin with.
AskedQuestion Ask(const simulator::ClusterModel& cluster, const SimulatedWork& work,
                  const v1::JobSpec& spec, const std::string& subject) {
  const absl::StatusOr<job::JobSettings> settings = spec::ParseSpec(spec);
  if (!settings.ok()) return Refused(ErrorLines(settings.status(), subject));
  if (spec.data().has_subset()) {
    return Refused(
        {subject + ": data.subset: a simulation has no samples to choose from; leave it out"});
  }
  if (settings->mesh_devices > 1) {
    return Refused({subject + ": model.options.mesh: a simulation knows no meshes; tactus layouts "
                              "has what they cost"});
  }
  const std::string too_few = TooFewDevices(cluster, *settings);
  if (!too_few.empty()) return Refused({subject + ": " + too_few});
  absl::StatusOr<LearnerSource> learners = LearnerSource::Open(work, spec);
  if (!learners.ok()) {
    // What is wrong with data is wrong with the job file's; a curve's path stands in the message.
    const bool data = work.loss.has_perceptron();
    return Refused(ErrorLines(learners.status(), data ? subject : ""));
  }
  // Shared with every copy of the function.
  const auto prepared = std::make_shared<const Prepared>(
      Prepared{.cluster = cluster,
               .model = work.model,
               .settings = *settings,
               .spec = spec.SerializeAsString(),
               .engine = spec::EngineOptionsOf(spec::Resolve(spec)),
               .learners = *std::move(learners),
               .checkpoints_every = CheckpointsEvery(spec)});
  return {.question = SimulatedQuestion{
              .scenario = [prepared](std::uint64_t seed) { return ScenarioOf(*prepared, seed); },
              .target_loss = settings->stop_train_loss}};
}

// What a coordinator has on record of a job.
struct History {
  v1::Job job{};
  v1::ListRoundsResponse rounds{};
};

absl::StatusOr<History> FetchHistory(const std::string& name, api::Client& client) {
  absl::StatusOr<v1::Job> job = client.GetJob(name);
  if (!job.ok()) return job.status();
  absl::StatusOr<v1::ListRoundsResponse> rounds = client.ListAllRounds(name, kHistoryRoundsMax);
  if (!rounds.ok()) return rounds.status();
  return History{.job = *std::move(job), .rounds = *std::move(rounds)};
}

// What the model makes of the job as it was: the same cluster, the same number of rounds.
double ModelledSpeed(const FittedJob& fitted, v1::JobSpec spec, std::uint64_t seed) {
  spec.clear_stop();
  spec.mutable_stop()->set_rounds(fitted.rounds);
  const AskedQuestion asked = Ask(fitted.cluster, fitted.work, spec, "");
  if (!asked.question) return 0;
  return simulator::Simulate(asked.question->scenario(seed)).jobs.front().samples_per_second;
}

// The job takes all devices of a changed cluster, unless the command line says how many.
void TakeAllDevices(const SimulateCommand& command, const simulator::ClusterModel& cluster,
                    v1::JobSpec* spec) {
  const bool changed = !command.add.empty() || !command.remove.empty();
  const bool said = std::ranges::any_of(command.overrides, [](const Override& change) {
    return change.path == "workers" || change.path.starts_with("workers.");
  });
  if (!changed || said) return;
  const auto devices =
      static_cast<std::uint32_t>(FittingDevices(cluster, job::DeviceKind::kStandard));
  spec->mutable_workers()->set_min(devices);
  spec->mutable_workers()->set_max(devices);
}

// The cluster file and beside it the curve, which it names. Returns what could not be written.
std::vector<std::string> WriteFitted(const std::string& path, const FittedJob& fitted,
                                     const simulator::ClusterModel& cluster) {
  const std::string curve_path = CurvePathBeside(path);
  std::vector<simulator::CurvePoint> curve;
  for (const simulator::LossPoint& point : fitted.work.points) {
    curve.push_back({.round = curve.size(),
                     .samples = static_cast<std::uint64_t>(point.samples),
                     .loss = point.loss,
                     .loss_smoothed = point.loss});
  }
  SimulatedWork work = fitted.work;
  work.loss.mutable_curve()->set_file(std::filesystem::path(curve_path).filename().string());
  std::vector<std::string> errors;
  for (const absl::Status& status : {runtime::WriteFileWhole(path, WriteClusterFile(cluster, work)),
                                     runtime::WriteFileWhole(curve_path, CurveText(curve))}) {
    if (!status.ok()) errors.emplace_back(status.message());
  }
  return errors;
}

// The loss model of the command line, where it has one. Returns what is wrong.
std::vector<std::string> ReplaceLoss(const std::string& loss,
                                     const simulator::ClusterModel& cluster, SimulatedWork* work) {
  if (loss.empty()) return {};
  const ClusterFile replaced = ParseClusterFile(WriteClusterFile(cluster, {}), loss, "");
  if (replaced.errors.empty()) {
    work->loss = replaced.work.loss;
    work->points.clear();
  }
  return replaced.errors;
}

}  // namespace

AskedQuestion AskFiles(const SimulateCommand& command) {
  if (command.random) {
    return {.question = SimulatedQuestion{.scenario = simulator::RandomScenario}};
  }
  const ClusterFile cluster = ReadClusterFile(command.cluster_file, command.loss);
  if (!cluster.errors.empty()) return Refused(WithSubject(command.cluster_file, cluster.errors));
  const JobFile job = ReadSimulatedJob(command);
  if (!job.errors.empty()) return Refused(WithSubject(command.job_file, job.errors));
  return Ask(cluster.cluster, cluster.work, job.spec, command.job_file);
}

AskedQuestion AskHistory(const SimulateCommand& command, api::Client& client) {
  const absl::StatusOr<History> history = FetchHistory(command.from, client);
  if (!history.ok()) {
    return {.errors = ErrorLines(history.status(), ""), .exit_code = ExitCodeOf(history.status())};
  }
  const std::string subject = "job " + command.from;
  const FittedJob fitted = FitJob(history->job, history->rounds);
  if (!fitted.error.empty()) return Refused({subject + ": " + fitted.error});
  JobFile job = ParseJobFile(WriteMessage(history->job.spec()), command.overrides, "/");
  if (!job.errors.empty()) return Refused(WithSubject(subject, job.errors));

  simulator::ClusterModel cluster = fitted.cluster;
  const std::string wrong = Change(
      {.add = command.add, .remove = command.remove, .rate = command.rate}, history->job, &cluster);
  if (!wrong.empty()) return Refused({wrong});
  TakeAllDevices(command, cluster, &job.spec);
  SimulatedWork work = fitted.work;
  const std::vector<std::string> wrong_loss = ReplaceLoss(command.loss, cluster, &work);
  if (!wrong_loss.empty()) return Refused(wrong_loss);

  AskedQuestion asked = Ask(cluster, work, job.spec, subject);
  if (!asked.question) return asked;
  if (!command.cluster_output.empty()) {
    const std::vector<std::string> errors = WriteFitted(command.cluster_output, fitted, cluster);
    if (!errors.empty()) return {.errors = errors, .exit_code = ExitCode::kFile};
  }
  asked.question->fit = FitSummary{
      .job = command.from,
      .rounds = fitted.rounds,
      .transfer_seconds = fitted.transfer_seconds,
      .recorded_samples_per_second = fitted.samples_per_second,
      .modelled_samples_per_second = ModelledSpeed(fitted, history->job.spec(), command.seed)};
  return asked;
}

}  // namespace tactus::client
