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
  enum class Noun { kJobs, kJob, kNodes, kRounds };
  Noun noun = Noun::kJobs;
  std::string name{};               // of the job, for kJob and kRounds
  std::size_t count_max = 100'000;  // for kJobs and kRounds
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
  bool keep = false;
  bool json = false;
};

struct VersionCommand {};

using Command = std::variant<SubmitCommand, GetCommand, WatchCommand, CancelCommand,
                             DownloadCommand, RunCommand, VersionCommand>;

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
