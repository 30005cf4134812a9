// What an agent is told at its start, as text and as checked values.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/daemon/box_flags.h"
#include "agent/daemon/memory_kills.h"
#include "agent/daemon/torchscript_rule.h"
#include "base/time.h"
#include "cuda/nvml.h"
#include "identity/credentials.h"

namespace tactus::agent {

// A worker that ends may overlap the next one on its device, but not for ever.
inline constexpr std::size_t kWorkersPerDeviceMax = 4;

// One device that the agent offers.
struct DeviceOptions {
  std::string name;                // "cpu:0"
  bool cuda = false;               // else the host's processor
  unsigned gpu = 0;                // of a GPU: cuda::GpuIdentity.index
  std::string model;               // for people
  double emulated_speed = 0;       // 0: real; else > 0, 1 is the reference
  std::string uuid{};              // of a GPU, where known
  std::uint64_t memory_bytes = 0;  // 0: not known
  std::string fault{};             // why nothing is to be given to it from the start; empty: well
  std::vector<unsigned> cpus{};    // to which its workers keep; empty: to none in particular
};

// The command line, unread. Empty text = not given.
struct AgentFlags {
  std::string coordinator;
  std::string node;
  std::vector<std::string> devices;
  std::vector<double> emulated_speeds;
  double emulated_cpu_factor = 0;  // 0: not given
  std::string address = "127.0.0.1";
  std::string state_folder;
  std::string worker_binary;
  std::vector<std::string> labels{};  // "key=value"
  std::vector<std::string> taints{};  // "key" or "key=value"
  std::string drain_deadline = "1m";
  std::string preemption_command{};
  bool allow_programs = false;
  BoxFlags box{};
  std::string torchscript = "any";
  std::vector<std::string> worker_env{};
  std::string tls_dir{};
  bool insecure = false;
};

// What the host is, found by main.
struct Host {
  std::string name{};
  std::string processor_model{};
  unsigned cores = 1;                        // >= 1: that it may use (cpu_quota.h)
  std::uint64_t memory_bytes = 0;            // 0: not known
  std::vector<cuda::GpuIdentity> gpus{};     // by index, which is the position; as NVML has them
  std::string no_gpus_reason{};              // where there are none
  std::string sysfs = "/sys";                // where the kernel tells of devices
  std::string home{};                        // of this user; empty: not known
  std::vector<std::string> state_folders{};  // of this user's daemons, where none is named
};

// True where Resolve needs to know the host's GPUs.
bool NamesGpus(const AgentFlags& flags);

// What the agent lives by: checked.
struct AgentOptions {
  std::string coordinator;             // host:port
  std::string node;                    // 1 to 63 of [a-z0-9-.]
  std::vector<DeviceOptions> devices;  // at least one, names distinct
  double emulated_cpu_factor = 1;      // >= 1
  std::string address;                 // of this host towards other workers
  std::string state_folder;
  std::string worker_binary;
  unsigned threads_per_cpu_device = 1;     // >= 1
  std::vector<std::string> environment{};  // of the workers, before the agent's additions
  std::string version{};
  std::string metrics_address{};  // empty: none
  std::map<std::string, std::string> labels{};
  std::vector<std::string> taints{};
  MemoryKillFiles memory_kill_files{};
  std::string preemption_command{};  // of PreemptionWatch; empty: none
  bool allow_programs = false;       // whoever may submit jobs runs what they like, as its user
  box::BoxOptions box{};             // that workers run in, without the state folder
  TorchscriptRule torchscript{};     // which models it takes
  std::vector<std::string> worker_env{};  // what else of the environment workers have
  identity::Security security{};
  Duration drain_deadline{};  // from the first signal to the end of its workers; 0: none
};

// Checks the flags against the host and fills in what follows from them: node from the certificate,
// where there is one, which has to be that node's, else from the host's name, devices cpu:0, the
// device "gpus" as all of the host's GPUs, and for emulated speeds
//
//   emulated_cpu_factor = 1.15 max(1, sum of speeds / cores)
//
// so that workers sharing the cores do not stretch each other beyond their emulated durations; the
// 15 % are room for everything else that runs on the host. threads_per_cpu_device = max(1, cores /
// CPU devices). Errors: InvalidArgument, "flag: what was found and what is allowed". Source:
// design.
//
// cuda:N is NVML's GPU N, by PCI bus, which need not be CUDA's: workers are told of it by UUID. A
// GPU that cannot be read is offered with a fault, so that it does not keep the others from work.
absl::StatusOr<AgentOptions> Resolve(const AgentFlags& flags, const Host& host);

}  // namespace tactus::agent
