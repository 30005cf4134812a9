// The command line as plain structs; client/cli reads them from words.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "client/ask/simulate_command.h"
#include "client/local/run.h"
#include "client/observe/job_plot.h"
#include "client/render/tables.h"
#include "client/text/flag_checks.h"
#include "client/yaml/job_file.h"

namespace tactus::client {

using Labels = std::vector<std::pair<std::string, std::string>>;  // in the order given

struct SubmitCommand {
  std::string job_file{};
  std::vector<Override> overrides{};
  Labels labels{};
  std::optional<std::int32_t> priority{};
  bool dry_run = false;
  bool follow = false;
  OutputFormat output = OutputFormat::kName;
};

struct GetCommand {
  enum class Noun { kJobs, kJob, kNodes, kNode, kRounds, kDecisions };
  Noun noun = Noun::kJobs;
  std::string name{};               // of the job or node, but for kJobs and kNodes
  std::size_t count_max = 100'000;  // for kJobs, kRounds and kDecisions
  std::string filter{};             // for kJobs, as ListJobsRequest has them
  std::string order_by{};
  bool watch = false;                    // for kJobs and kNodes: go on with what changes
  std::optional<OutputFormat> output{};  // not given: as the settings say
};

struct DescribeCommand {
  enum class Noun { kJob, kNode };
  Noun noun = Noun::kJob;
  std::string name{};
};

struct ExplainCommand {
  std::string name{};
  OutputFormat output = OutputFormat::kTable;
};

struct WatchCommand {
  std::string name{};
  bool json = false;
};

struct WaitCommand {
  std::string name{};
  v1::JobState state = v1::JOB_STATE_SUCCEEDED;
  std::optional<Duration> timeout{};  // not given: for ever
};

struct LogsCommand {
  std::string name{};
  std::vector<std::uint32_t> ranks{};  // empty: all
  bool follow = false;
  std::uint32_t tail = 0;  // 0: all that is kept
};

struct UpdateCommand {
  std::string name{};
  std::vector<Override> overrides{};  // paths with or without "spec."
  Labels labels{};
  std::vector<std::string> labels_removed{};
  std::optional<std::int32_t> priority{};
  std::vector<std::string> freeze{};  // axes
  std::vector<std::string> unfreeze{};
  std::string etag{};  // empty: whatever the job's is
  bool dry_run = false;
};

struct CancelCommand {
  std::string name{};
  bool discard = false;
  std::optional<Duration> grace{};
};

struct PauseCommand {
  std::string name{};
};

struct ResumeCommand {
  std::string name{};
};

struct DeleteCommand {
  std::vector<std::string> names{};
  bool yes = false;
};

struct NodeCommand {
  enum class Action { kCordon, kDrain, kUncordon };
  Action action = Action::kCordon;
  std::string name{};
  bool wait = false;                  // kDrain: until no device has a job
  std::optional<Duration> timeout{};  // of the waiting
};

struct TraceCommand {
  std::string name{};
  RoundRange rounds{};  // an end that is not given: the last rounds
};

struct PlotCommand {
  std::string name{};
  PlotAxis axis = PlotAxis::kTime;
  std::string file{};  // empty: standard output
};

struct TopCommand {
  bool once = false;  // as where there is no terminal
};

struct BackupCommand {
  std::string file{};
};

struct IntegrityCommand {
  OutputFormat output = OutputFormat::kTable;
};

struct LogLevelCommand {
  std::string level{};
  std::string node{};  // empty: the coordinator
};

struct ConfigCommand {
  enum class Action { kShow, kGetContexts, kUseContext };
  Action action = Action::kShow;
  std::string context{};  // for kUseContext
  OutputFormat output = OutputFormat::kTable;
};

struct CompletionCommand {
  enum class Shell { kBash, kZsh, kFish };
  Shell shell = Shell::kBash;
};

struct ManCommand {
  std::string folder{};
};

struct DownloadCommand {
  std::string name{};
  std::string folder{};  // empty: the job's name
};

struct ReplayCommand {
  std::string tape{};
  bool allow_cut = false;
  OutputFormat output = OutputFormat::kTable;
};

struct VersionCommand {};

using Command =
    std::variant<SubmitCommand, GetCommand, DescribeCommand, ExplainCommand, WatchCommand,
                 WaitCommand, LogsCommand, UpdateCommand, CancelCommand, PauseCommand,
                 ResumeCommand, DeleteCommand, DownloadCommand, NodeCommand, TopCommand,
                 TraceCommand, PlotCommand, BackupCommand, IntegrityCommand, LogLevelCommand,
                 ConfigCommand, CompletionCommand, ManCommand, RunCommand, ReplayCommand,
                 SimulateCommand, VersionCommand>;

// Options before or after every verb; empty: not given.
struct CommandLine {
  std::string server{};
  std::string context{};
  std::string request_timeout{};  // a duration
  Command command{};
};

}  // namespace tactus::client
