// `tactus slurm`: a script for sbatch whose allocation trains a job. Slurm gives nodes, Tactus
// gives work: the script starts agents by srun, and nothing else of Slurm is asked for.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/time.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

// Nodes of one kind. Texts are sbatch's own; empty: it is not asked for.
struct NodeGroup {
  std::uint32_t nodes = 1;
  std::string partition{};
  std::string gres{};  // "gpu:4"
  std::string constraint{};
  std::string memory{};       // of each node, "64G"
  std::uint32_t cpus = 0;     // of each node; 0: the whole node, unless gres are asked for
  std::uint32_t workers = 1;  // on a node without GPUs
};

// Reads "partition=a100,nodes=2,gres=gpu:4" over `group`: keys are the members' names. Errors:
// InvalidArgument, what was found and what is allowed.
absl::Status ReadNodeGroup(const std::string& text, NodeGroup* group);

struct SlurmScript {
  std::string name{};               // of Slurm's job
  std::string binary_folder{};      // of the programs, on every node
  std::string folder{};             // absolute: state, logs and result, on a disk that nodes share
  std::string job_file{};           // absolute; empty: nodes for the jobs of `server`
  std::vector<std::string> sets{};  // --set of the job file
  std::vector<NodeGroup> groups{};  // several: a heterogeneous job
  Duration time{};                  // of the allocation; 0: the partition's default
  Duration notice = Seconds(120);   // before its end, for checkpoint and goodbye
  bool finish = false;              // at its end: the job ends too, with the result it has
  bool requeue = false;             // at its end, where the job is not over: once more
  std::string server{};             // of a coordinator that is there; empty: one of its own
  std::string tls_dir{};            // towards `server`
  std::string agent_tls_dir{};      // likewise, on the nodes; %N is the node's name
  bool insecure = false;
  std::string interface {};          // by which nodes reach each other; empty: by their names
  std::string scratch = "/tmp";      // on each node
  std::vector<std::string> lines{};  // more options of sbatch, as "--account=vision"
};

// The whole script. Errors: InvalidArgument, naming the option: a text that sbatch's lines cannot
// hold, a notice that is not shorter than the time, what only one's own coordinator can do.
absl::StatusOr<std::string> FormatSlurmScript(const SlurmScript& script);

// Writes the script into its folder, which is made, and has sbatch submit it. Blocks until sbatch
// ends, whose words go where ours go.
ExitCode SubmitSlurmScript(const SlurmScript& script, const Screen& screen);

// What the allocation does, behind the lines that are its own: slurm.sh.
const char* SlurmScriptBody();

}  // namespace tactus::client
