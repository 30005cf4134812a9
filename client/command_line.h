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
#include "client/job_file.h"
#include "client/job_plot.h"
#include "client/tables.h"

namespace tactus::client {

// Rounds from the first to the last, both included.
struct RoundRange {
  std::optional<std::uint64_t> first{};
  std::optional<std::uint64_t> last{};
};

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
