#include "client/simulate.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cluster_file.h"
#include "client/connection.h"
#include "client/curve_file.h"
#include "client/job_file.h"
#include "client/learner_source.h"
#include "client/seed_table.h"
#include "client/simulated_tape.h"
#include "client/simulation_report.h"
#include "client/text.h"
#include "client/trace_file.h"
#include "coordinator/job/wording.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/spec_validation.h"
#include "runtime/process.h"
#include "simulator/simulation.h"

namespace tactus::client {
namespace {

// All that the files say, checked.
struct Question {
  simulator::ClusterModel cluster{};
  SimulatedWork work{};
  job::JobSettings settings{};
  std::string spec{};  // serialized
  engine::EngineOptions engine{};
  LearnerSource learners;
};

// A question, or the lines that say why there is none.
struct Asked {
  std::optional<Question> question{};
  std::vector<std::string> errors{};
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
  if (kind == job::DeviceKind::kAny) return cuda > 0 ? cuda : cpu;
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

Asked Read(const SimulateCommand& command) {
  const ClusterFile cluster = ReadClusterFile(command.cluster_file, command.loss);
  if (!cluster.errors.empty()) {
    return {.errors = WithSubject(command.cluster_file, cluster.errors)};
  }
  const JobFile job = ReadSimulatedJob(command);
  if (!job.errors.empty()) return {.errors = WithSubject(command.job_file, job.errors)};
  const absl::StatusOr<job::JobSettings> settings = spec::ParseSpec(job.spec);
  if (!settings.ok()) return {.errors = ErrorLines(settings.status(), command.job_file)};
  const std::string too_few = TooFewDevices(cluster.cluster, *settings);
  if (!too_few.empty()) return {.errors = {command.job_file + ": " + too_few}};
  absl::StatusOr<LearnerSource> learners = LearnerSource::Open(cluster.work, job.spec);
  if (!learners.ok()) {
    // What is wrong with data is wrong with the job file's; a curve's path stands in the message.
    const bool data = std::holds_alternative<PerceptronLoss>(cluster.work.loss);
    return {.errors = ErrorLines(learners.status(), data ? command.job_file : "")};
  }
  return {.question = Question{.cluster = cluster.cluster,
                               .work = cluster.work,
                               .settings = *settings,
                               .spec = job.spec.SerializeAsString(),
                               .engine = spec::EngineOptionsOf(job.spec),
                               .learners = *std::move(learners)}};
}

simulator::Scenario ScenarioOf(const Question& question, std::uint64_t seed) {
  simulator::Scenario scenario;
  scenario.cluster = question.cluster;
  scenario.seed = seed;
  simulator::SimulatedJob job;
  job.settings = question.settings;
  job.spec = question.spec;
  job.engine = question.engine;
  job.learner = question.learners.Make(seed);
  job.engine.train_samples = job.learner->train_samples();
  job.parameters = question.work.parameters;
  job.backward_share = question.work.backward_share;
  job.load_seconds = question.work.load_seconds;
  job.conclude_seconds = question.work.conclude_seconds;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

// A word as a shell takes it.
std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](const char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ||
           c == '/' || c == '=' || c == ',';
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string RepeatingCommand(const SimulateCommand& command, std::uint64_t seed) {
  std::string text = "tactus simulate " + ShellWord(command.cluster_file) + " " +
                     ShellWord(command.job_file) + " --seed " + std::to_string(seed);
  if (!command.loss.empty()) text += " --loss " + ShellWord(command.loss);
  for (const Override& change : command.overrides) {
    text += " --set " + ShellWord(change.path + "=" + change.value);
  }
  return text;
}

// Simulates one question under one seed or several.
class Simulation {
 public:
  Simulation(const SimulateCommand& command, const Question& question, const Screen& screen)
      : command_(command),
        question_(question),
        screen_(screen),
        target_loss_(command.target_loss ? command.target_loss
                                         : question.settings.stop_train_loss) {}

  ExitCode RunOne() {
    simulator::Scenario scenario = ScenarioOf(question_, command_.seed);
    scenario.trace = !command_.trace_file.empty();
    SimulatedTape tape(command_.tape_file);
    if (!command_.tape_file.empty()) tape.Attach(&scenario);
    const simulator::Outcome outcome = simulator::Simulate(std::move(scenario));
    const ReportOptions options = {.seed = command_.seed, .loss = target_loss_};
    screen_.Print(command_.output == OutputFormat::kJson ? ReportJson(outcome, options)
                                                         : ReportTable(outcome, options));
    const ExitCode code = Judge(command_.seed, outcome);
    absl::Status written = tape.Close();
    written.Update(WriteFiles(outcome));
    if (written.ok()) return code;
    screen_.Say(std::string(written.message()));
    return code == ExitCode::kOk ? ExitCode::kGeneric : code;
  }

  ExitCode RunSeveral() {
    std::vector<SeedResult> results;
    ExitCode worst = ExitCode::kOk;
    for (std::uint64_t i = 0; i < command_.count; ++i) {
      const std::uint64_t seed = command_.seed + i;
      const simulator::Outcome outcome = simulator::Simulate(ScenarioOf(question_, seed));
      results.push_back(ResultOf(seed, outcome, target_loss_));
      worst = std::max(worst, Judge(seed, outcome));
    }
    screen_.Print(command_.output == OutputFormat::kJson ? SeedJson(results) : SeedTable(results));
    return worst;
  }

 private:
  // Says what was broken and how to see it again.
  ExitCode Judge(std::uint64_t seed, const simulator::Outcome& outcome) const {
    for (const simulator::Violation& violation : outcome.violations) {
      screen_.Say("a promise was broken at " + FormatRate(violation.seconds) +
                  "s: " + Printable(violation.what));
    }
    if (outcome.violations_total > 0) {
      screen_.Say(FormatCount(outcome.violations_total) +
                  " in all; again: " + RepeatingCommand(command_, seed));
      return ExitCode::kPromiseBroken;
    }
    const bool succeeded = std::ranges::all_of(outcome.jobs, [](const simulator::JobOutcome& job) {
      return job.state == job::JobState::kSucceeded;
    });
    return succeeded ? ExitCode::kOk : ExitCode::kJobFailed;
  }

  absl::Status WriteFiles(const simulator::Outcome& outcome) const {
    absl::Status status;
    if (!command_.curve_file.empty()) {
      status.Update(
          runtime::WriteFileWhole(command_.curve_file, CurveText(outcome.jobs.front().curve)));
    }
    if (!command_.trace_file.empty()) {
      if (outcome.trace.cut) screen_.Say("the trace is cut: it holds the first spans alone");
      status.Update(runtime::WriteFileWhole(command_.trace_file, ChromeTrace(outcome)));
    }
    return status;
  }

  const SimulateCommand& command_;
  const Question& question_;
  const Screen& screen_;
  const std::optional<double> target_loss_;
};

}  // namespace

ExitCode Simulate(const SimulateCommand& command, const Screen& screen) {
  const Asked asked = Read(command);
  if (!asked.question) {
    screen.Say(asked.errors);
    return ExitCode::kUsage;
  }
  Simulation simulation(command, *asked.question, screen);
  return command.count == 1 ? simulation.RunOne() : simulation.RunSeveral();
}

}  // namespace tactus::client
