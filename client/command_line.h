// The command line as plain structs; its .cc is the one file that knows CLI11.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "client/job_file.h"
#include "client/tables.h"

namespace tactus::client {

struct SubmitCommand {
  std::string job_file{};
  std::vector<Override> overrides{};
  bool dry_run = false;
  bool follow = false;
  OutputFormat output = OutputFormat::kName;
};

struct GetCommand {
  enum class Noun { kJobs, kJob, kNodes, kRounds, kDecisions };
  Noun noun = Noun::kJobs;
  std::string name{};               // of the job, for kJob, kRounds and kDecisions
  std::size_t count_max = 100'000;  // for kJobs, kRounds and kDecisions
  OutputFormat output = OutputFormat::kTable;
};

struct ExplainCommand {
  std::string name{};
  OutputFormat output = OutputFormat::kTable;
};

struct WatchCommand {
  std::string name{};
  bool json = false;
};

struct CancelCommand {
  std::string name{};
  bool discard = false;
};

struct DownloadCommand {
  std::string name{};
  std::string folder{};  // empty: the job's name
};

struct RunCommand {
  std::string job_file{};
  std::vector<Override> overrides{};
  std::uint32_t workers = 0;     // 0: not given
  std::vector<double> speeds{};  // empty: not given
  std::string output_folder{};   // empty: in the run's own folder
  std::string tape{};            // file for the coordinator's tape; empty: none
  bool keep = false;
  bool json = false;
};

struct ReplayCommand {
  std::string tape{};
  bool allow_cut = false;
  OutputFormat output = OutputFormat::kTable;
};

struct SimulateCommand {
  // One of three: two files, a job's name, or a random scenario.
  std::string cluster_file{};
  std::string job_file{};
  std::string from{};
  bool random = false;
  // Changes to the cluster that is fitted to `from`, as client/what_if.h has them.
  std::vector<std::string> add{};
  std::vector<std::string> remove{};
  std::string rate{};
  std::string cluster_output{};         // file for that cluster; empty: none
  std::vector<Override> overrides{};    // of the job file
  std::string loss{};                   // YAML for the cluster file's `loss`; empty: not given
  std::optional<double> target_loss{};  // whose time is reported; else the job's stop.train_loss
  std::uint64_t seed = 1;               // of the first simulation
  std::uint32_t count = 1;              // simulations, one a seed
  OutputFormat output = OutputFormat::kTable;
  // Files to write, of one seed; empty: none.
  std::string curve_file{};
  std::string trace_file{};
  std::string tape_file{};
};

struct VersionCommand {};

using Command =
    std::variant<SubmitCommand, GetCommand, ExplainCommand, WatchCommand, CancelCommand,
                 DownloadCommand, RunCommand, ReplayCommand, SimulateCommand, VersionCommand>;

struct CommandLine {
  std::string server{};  // --server; empty: not given
  Duration request_timeout = Seconds(10);
  Command command{};
};

// A command line that was understood, or what to print instead.
struct ParsedCommandLine {
  std::optional<CommandLine> line;
  std::string help{};   // for standard output, exit code 0
  std::string error{};  // for standard error, exit code 2
};

// `words` without the program's name. Pure.
ParsedCommandLine ParseCommandLine(const std::vector<std::string>& words);

}  // namespace tactus::client
