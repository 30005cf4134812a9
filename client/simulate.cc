#include "client/simulate.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "client/curve_file.h"
#include "client/seed_table.h"
#include "client/simulated_question.h"
#include "client/simulated_tape.h"
#include "client/simulation_report.h"
#include "client/text.h"
#include "client/trace_file.h"
#include "runtime/process.h"
#include "simulator/simulation.h"

namespace tactus::client {
namespace {

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
  std::string text = "tactus simulate ";
  if (command.random) {
    text += "--random";
  } else if (!command.from.empty()) {
    text += "--from " + ShellWord(command.from);
  } else {
    text += ShellWord(command.cluster_file) + " " + ShellWord(command.job_file);
  }
  text += " --seed " + std::to_string(seed);
  for (const std::string& add : command.add) text += " --add " + ShellWord(add);
  for (const std::string& remove : command.remove) text += " --remove " + ShellWord(remove);
  if (!command.rate.empty()) text += " --rate " + ShellWord(command.rate);
  if (!command.loss.empty()) text += " --loss " + ShellWord(command.loss);
  for (const Override& change : command.overrides) {
    text += " --set " + ShellWord(change.path + "=" + change.value);
  }
  return text;
}

// Simulates one question under one seed or several.
class Simulation {
 public:
  Simulation(const SimulateCommand& command, const SimulatedQuestion& question,
             const Screen& screen)
      : command_(command),
        question_(question),
        screen_(screen),
        target_loss_(command.target_loss ? command.target_loss : question.target_loss) {}

  ExitCode RunOne() {
    simulator::Scenario scenario = question_.scenario(command_.seed);
    scenario.trace = !command_.trace_file.empty();
    SimulatedTape tape(command_.tape_file);
    if (!command_.tape_file.empty()) tape.Attach(&scenario);
    const simulator::Outcome outcome = simulator::Simulate(std::move(scenario));
    const ReportOptions options = {
        .seed = command_.seed, .loss = target_loss_, .fit = question_.fit};
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
      const simulator::Outcome outcome = simulator::Simulate(question_.scenario(seed));
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
    // Drawn jobs are meant to fail now and then.
    if (command_.random) return ExitCode::kOk;
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
  const SimulatedQuestion& question_;
  const Screen& screen_;
  const std::optional<double> target_loss_;
};

ExitCode Answer(const SimulateCommand& command, const AskedQuestion& asked, const Screen& screen) {
  if (!asked.question) {
    screen.Say(asked.errors);
    return asked.exit_code;
  }
  Simulation simulation(command, *asked.question, screen);
  return command.count == 1 ? simulation.RunOne() : simulation.RunSeveral();
}

}  // namespace

ExitCode Simulate(const SimulateCommand& command, const Screen& screen) {
  return Answer(command, AskFiles(command), screen);
}

ExitCode SimulateHistory(const SimulateCommand& command, Connection& connection,
                         const Screen& screen) {
  return Answer(command, AskHistory(command, connection), screen);
}

}  // namespace tactus::client
