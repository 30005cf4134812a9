#include "client/local/demo.h"

#include <signal.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "client/local/child_process.h"
#include "client/observe/event_loop.h"
#include "client/text/text.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr char kSpeeds[] = "1,1,0.5,0.25";
constexpr unsigned kNumbers = 100;  // below it are those that are added

constexpr char kJob[] = R"(# A small transformer over bytes, on sums in words.
name: demo
model:
  builtin: bytes-lm
  options: {width: 64, heads: 4, layers: 2, context: 64}
data:
  text: sums.txt
  validation_samples_max: 500
optimizer:
  adamw: {learning_rate: 0.002}
stop:
  time: 15s
workers: {min: 4, max: 4, device: cpu}
)";

std::string InWords(unsigned number) {
  static constexpr const char* kSmall[] = {
      "nought",   "one",     "two",     "three",     "four",     "five",    "six",
      "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
      "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr const char* kTens[] = {"",      "",      "twenty",  "thirty", "forty",
                                          "fifty", "sixty", "seventy", "eighty", "ninety"};
  if (number >= 100) {
    const std::string rest = number > 100 ? " and " + InWords(number - 100) : "";
    return "a hundred" + rest;
  }
  if (number < 20) return kSmall[number];
  return std::string(kTens[number / 10]) +
         (number % 10 > 0 ? std::string("-") + kSmall[number % 10] : "");
}

std::string TextOfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A folder that goes with this, unless it is the user's.
class DemoFolder {
 public:
  ~DemoFolder() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(path_, ignored);
  }
  // Errors: of the file system; AlreadyExists, the user's is not empty.
  absl::Status Make(const std::string& wanted) {
    if (wanted.empty()) {
      path_ = (std::filesystem::temp_directory_path() / "tactus-demo-XXXXXX").string();
      temporary_ = ::mkdtemp(path_.data()) != nullptr;
      return temporary_ ? absl::OkStatus()
                        : runtime::FileError(errno, path_, "the folder cannot be made");
    }
    path_ = std::filesystem::absolute(wanted).string();
    if (absl::Status made = runtime::MakeWritableFolder(path_); !made.ok()) return made;
    if (std::filesystem::is_empty(path_)) return absl::OkStatus();
    return absl::AlreadyExistsError("--output: " + wanted +
                                    " has files; allowed is a folder that is new or empty");
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool temporary_ = false;
};

class DemoRuns {
 public:
  DemoRuns(const DemoCommand& command, const DemoFolder& folder, const std::string& binary_folder,
           const Screen& screen)
      : command_(command), folder_(folder), program_(binary_folder + "/tactus"), screen_(screen) {}

  // One training with batches by `policy`, whose result is in that folder of the folder then.
  ExitCode Train(const std::string& title, const std::string& policy) {
    const std::vector<std::string> words = {
        "run",      folder_.File("demo.yaml"),
        "--speeds", kSpeeds,
        "--set",    "adapt.policy=none",
        "--set",    "adapt.batch.policy=" + policy,
        "--set",    "stop.time=" + std::to_string(command_.seconds) + "s",
        "--output", folder_.File(policy)};
    std::string line = "\n== " + title + " ==\n$ tactus";
    for (const std::string& word : words) line += " " + word;
    screen_.Print(line + "\n");
    absl::StatusOr<ChildProcess> child =
        ChildProcess::Start({.program = program_, .arguments = words});
    if (!child.ok()) {
      screen_.Say(std::string(child.status().message()));
      return ExitCode::kGeneric;
    }
    return Await(*child);
  }

 private:
  // The run is in a group of its own, so it gets a signal from us alone.
  ExitCode Await(ChildProcess& run) {
    const auto ended = [&run] { return !run.IsRunning(); };
    while (loop_.RunUntil(ended, EventLoop::kForever) != EventLoop::Outcome::kDone) {
      run.Signal(SIGINT);
    }
    if (loop_.interrupts() > 0) return ExitCode::kInterrupted;
    return static_cast<ExitCode>(run.exit_code());
  }

  const DemoCommand& command_;
  const DemoFolder& folder_;
  const std::string program_;
  const Screen& screen_;
  EventLoop loop_{{SIGINT, SIGTERM, SIGHUP}};
};

// Numbers of a summary that are compared, by their names and pointers there.
constexpr std::pair<const char*, const char*> kLosses[] = {{"training loss", "/train_loss"},
                                                           {"validation loss", "/validation/loss"}};

std::optional<double> NumberAt(const nlohmann::json& summary, const std::string& pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!summary.contains(place) || !summary.at(place).is_number()) return std::nullopt;
  return summary.at(place).get<double>();
}

absl::Status WriteInput(const DemoFolder& folder) {
  const absl::Status text = runtime::WriteFileWhole(folder.File("sums.txt"), DemoText());
  return text.ok() ? runtime::WriteFileWhole(folder.File("demo.yaml"), kJob) : text;
}

}  // namespace

std::string DemoText() {
  std::string text;
  for (unsigned one = 0; one < kNumbers; ++one) {
    // In an order in which neighbours differ, and each pair comes once.
    for (unsigned step = 0; step < kNumbers; ++step) {
      const unsigned other = (step * 37 + one * 11) % kNumbers;
      text += InWords(one) + " and " + InWords(other) + " make " + InWords(one + other) + "\n";
    }
  }
  return text;
}

absl::StatusOr<std::string> CompareSummaries(const std::string& equal,
                                             const std::string& by_speed) {
  std::vector<nlohmann::json> summaries;
  for (const std::string& text : {equal, by_speed}) {
    summaries.push_back(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
  }
  const auto numbers = [&](const std::string& pointer) -> absl::StatusOr<std::vector<double>> {
    std::vector<double> found;
    for (const nlohmann::json& summary : summaries) {
      const std::optional<double> number = NumberAt(summary, pointer);
      if (!number) return absl::InvalidArgumentError("summary.json: " + pointer + " is no number");
      found.push_back(*number);
    }
    return found;
  };
  const auto samples = numbers("/samples");
  const auto seconds = numbers("/train_seconds");
  const auto rounds = numbers("/rounds");
  for (const auto* one : {&samples, &seconds, &rounds}) {
    if (!one->ok()) return one->status();
  }
  std::vector<std::vector<std::string>> rows = {{"", "EQUAL", "BY SPEED"}};
  const auto count = [](double number) { return FormatCount(static_cast<std::uint64_t>(number)); };
  rows.push_back({"rounds", count((*rounds)[0]), count((*rounds)[1])});
  rows.push_back({"samples/s", FormatRate((*samples)[0] / (*seconds)[0]),
                  FormatRate((*samples)[1] / (*seconds)[1])});
  for (const auto& [name, pointer] : kLosses) {
    const auto loss = numbers(pointer);
    if (!loss.ok()) return loss.status();
    rows.push_back({name, FormatLoss((*loss)[0]), FormatLoss((*loss)[1])});
  }
  return FormatTable(rows);
}

ExitCode Demo(const DemoCommand& command, const Surroundings& surroundings, const Screen& screen) {
  DemoFolder folder;
  absl::Status ready = folder.Make(command.output_folder);
  if (ready.ok()) ready = WriteInput(folder);
  if (!ready.ok()) {
    screen.Say(std::string(ready.message()));
    return absl::IsAlreadyExists(ready) ? ExitCode::kConflict : ExitCode::kFile;
  }
  screen.Print(
      "A small language model learns sums in words, on four workers of this machine, as if "
      "of speeds " +
      std::string(kSpeeds) + ": " + std::to_string(command.seconds) +
      " s with equal batches, and as long with batches by speed.\n");
  DemoRuns runs(command, folder, surroundings.binary_folder, screen);
  const std::pair<const char*, const char*> trainings[] = {
      {"Equal batches: all wait for the slowest worker", "fixed"},
      {"Batches by speed: each takes what it can compute in the same time", "proportional"}};
  for (const auto& [title, policy] : trainings) {
    const ExitCode code = runs.Train(title, policy);
    if (code != ExitCode::kOk) return code;
  }
  const absl::StatusOr<std::string> table =
      CompareSummaries(TextOfFile(folder.File("fixed/summary.json")),
                       TextOfFile(folder.File("proportional/summary.json")));
  if (!table.ok()) {
    screen.Say(std::string(table.status().message()));
    return ExitCode::kGeneric;
  }
  screen.Print("\n== The same time on the same machine ==\n" + *table + "\n");
  if (command.output_folder.empty()) {
    screen.Print("Nothing of it is left running or on disk; --output FOLDER keeps it.\n");
  } else {
    screen.Print("Job file, text and results: " + Printable(command.output_folder) + "\n");
  }
  screen.Print(
      "Next: tactus run JOB.yaml, with a job file of your own (man tactus-run). Unless told "
      "otherwise, a job adapts more than its shares, and explains it.\n");
  return ExitCode::kOk;
}

}  // namespace tactus::client
