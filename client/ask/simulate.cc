#include "client/ask/simulate.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "client/ask/curve_file.h"
#include "client/ask/seed_table.h"
#include "client/ask/simulated_question.h"
#include "client/ask/simulated_tape.h"
#include "client/ask/simulation_report.h"
#include "client/observe/trace_file.h"
#include "client/text/text.h"
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

// What the command that repeats a simulation takes from elsewhere; empty: nothing.
std::string FromStandardInput(const SimulateCommand& command) {
  if (command.cluster_file == "-") return ", with the cluster file from standard input";
  return command.job_file == "-" ? ", with the job file from standard input" : "";
}

// Makes a file that is written later, so that it is known now that it can be. What is no file, such
// as a device, would be replaced by one.
absl::Status MakeFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return absl::InvalidArgumentError(path + ": cannot be written: not a regular file");
  }
  errno = 0;
  if (std::ofstream(path, std::ios::app).is_open()) return absl::OkStatus();
  return runtime::FileError(errno, path, "cannot be made");
}

// Adds what is wrong, if anything.
void Collect(const absl::Status& status, std::vector<std::string>& errors) {
  if (!status.ok()) errors.emplace_back(status.message());
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
    const std::vector<std::string> unwritable = MakeFiles();
    if (!unwritable.empty()) return Fail(unwritable, ExitCode::kOk);
    simulator::Scenario scenario = question_.scenario(command_.seed);
    scenario.trace = !command_.trace_file.empty();
    for (simulator::SimulatedJob& job : scenario.jobs) {
      job.validate_every = command_.validate_every;
    }
    SimulatedTape tape(command_.tape_file);
    if (!command_.tape_file.empty()) tape.Attach(&scenario);
    const simulator::Outcome outcome = simulator::Simulate(std::move(scenario));
    const ReportOptions options = {
        .seed = command_.seed, .loss = target_loss_, .fit = question_.fit};
    screen_.Print(command_.output == OutputFormat::kJson ? ReportJson(outcome, options)
                                                         : ReportTable(outcome, options));
    const ExitCode code = Judge(command_.seed, outcome);
    std::vector<std::string> errors = WriteFiles(outcome);
    if (!command_.tape_file.empty()) Collect(tape.Close(), errors);
    if (tape.full()) screen_.Say("the tape is full: it holds the first events alone");
    return errors.empty() ? code : Fail(errors, code);
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
  std::string Again(std::uint64_t seed) const {
    return " again" + FromStandardInput(command_) + ": " + RepeatingCommand(command_, seed);
  }

  // Says what was broken and how to see it again.
  ExitCode Judge(std::uint64_t seed, const simulator::Outcome& outcome) const {
    for (const simulator::Violation& violation : outcome.violations) {
      screen_.Say("a promise was broken at " + FormatRate(violation.seconds) +
                  "s: " + Printable(violation.what));
    }
    if (outcome.violations_total > 0) {
      screen_.Say(FormatCount(outcome.violations_total) + " in all;" + Again(seed));
      return ExitCode::kPromiseBroken;
    }
    if (!outcome.unfinished.empty()) {
      const auto days = static_cast<std::uint64_t>(simulator::Scenario{}.seconds_max / 86400);
      screen_.Say("the limit of virtual time, " + FormatCount(days) +
                  " days, was reached; not over: " + Printable(outcome.unfinished) + ";" +
                  Again(seed));
      return ExitCode::kTimedOut;
    }
    // Drawn jobs are meant to fail now and then.
    if (command_.random) return ExitCode::kOk;
    const bool succeeded = std::ranges::all_of(outcome.jobs, [](const simulator::JobOutcome& job) {
      return job.state == job::JobState::kSucceeded;
    });
    return succeeded ? ExitCode::kOk : ExitCode::kJobFailed;
  }

  std::vector<std::string> MakeFiles() const {
    std::vector<std::string> errors;
    for (const std::string& path : {command_.curve_file, command_.trace_file, command_.tape_file}) {
      if (!path.empty()) Collect(MakeFile(path), errors);
    }
    return errors;
  }

  std::vector<std::string> WriteFiles(const simulator::Outcome& outcome) const {
    std::vector<std::string> errors;
    if (!command_.curve_file.empty()) {
      const std::string text = CurveText(outcome.jobs.front().curve);
      Collect(runtime::WriteFileWhole(command_.curve_file, text), errors);
    }
    if (!command_.trace_file.empty()) {
      if (outcome.trace.cut) screen_.Say("the trace is cut: it holds the first spans alone");
      Collect(runtime::WriteFileWhole(command_.trace_file, ChromeTrace(outcome)), errors);
    }
    return errors;
  }

  // `code`: how the command would end if its files were right.
  ExitCode Fail(const std::vector<std::string>& errors, ExitCode code) const {
    screen_.Say(errors);
    return code == ExitCode::kOk ? ExitCode::kFile : code;
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

ExitCode SimulateHistory(const SimulateCommand& command, api::Client& client,
                         const Screen& screen) {
  return Answer(command, AskHistory(command, client), screen);
}

}  // namespace tactus::client
