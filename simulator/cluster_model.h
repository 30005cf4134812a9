// What is simulated: hosts with their devices and links, the control plane, and what goes wrong.
// Plain data, as a cluster file says it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tactus::simulator {

// The least mean of a phase of NoiseModel: shorter ones could not be told from the noise of single
// micro-batches.
inline constexpr double kPhaseSecondsMin = 1e-3;

// How the time of a micro-batch varies around its mean.
struct NoiseModel {
  // Log-normal factor exp(s N - s^2 / 2) of mean 1, drawn anew each micro-batch; s in [0, 2], 0:
  // none.
  double log_sigma = 0;
  // A Markov chain of slow phases, during which a micro-batch takes slow_factor times as long.
  // Stays are exponential with these means [s], both >= kPhaseSecondsMin when slow_factor > 1; the
  // first is a fast one.
  double slow_factor = 1;  // >= 1
  double slow_seconds = 0;
  double fast_seconds = 0;

  friend bool operator==(const NoiseModel&, const NoiseModel&) = default;
};

// How long a device takes for a micro-batch of n samples at time t:
//
//   (batch_seconds + n sample_seconds) (1 + drift_per_hour t / 3600) noise
struct DeviceModel {
  std::string name{};            // "cpu:0", "cuda:1"; unique on its host
  double batch_seconds = 0;      // >= 0
  double sample_seconds = 1e-3;  // > 0
  NoiseModel noise{};
  double drift_per_hour = 0;      // > 0: it becomes slower; the factor stays at 0.1 or above
  std::uint32_t samples_max = 0;  // of a micro-batch: what its memory holds; 0: any

  friend bool operator==(const DeviceModel&, const DeviceModel&) = default;
};

// One direction of a link, a token bucket: bytes leave at bytes_per_second, but up to burst_bytes
// saved up while it was idle leave at once.
struct LinkModel {
  double latency_seconds = 50e-6;    // >= 0
  double bytes_per_second = 1.25e9;  // > 0
  double burst_bytes = 0;            // >= 0

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

struct HostModel {
  std::string name{};   // unique
  std::string group{};  // hosts of one group reach one another over their own links alone
  LinkModel link{};     // to its switch, the same in both directions
  std::vector<DeviceModel> devices{};
};

// What two groups of hosts share, each direction for itself.
struct GroupLink {
  std::string a{};
  std::string b{};
  LinkModel link{};
};

// Which messages a collective is made of. kMesh is what agent/collective's TCP transport does.
enum class Algorithm { kMesh, kRing, kRecursiveHalving, kTree };

// Between agents and coordinator, and the coordinator's disk.
struct ControlModel {
  double delay_seconds = 0.5e-3;  // of a message, >= 0
  double jitter_seconds = 0;  // mean of an exponential on top, >= 0: packets overtake one another
  // Of messages that arrive twice, [0, 1): the stream breaks behind them, with what is under way.
  double duplicate_share = 0;
  double persist_seconds = 2e-3;  // of a write of the store, >= 0
};

// Something that goes wrong at a time and, where it ends, after a while.
struct Fault {
  enum class Kind {
    kWorkerCrash,       // the worker on host/device ends by a signal
    kPause,             // the worker on host/device stands still
    kSlowDown,          // the device takes `factor` times as long
    kAgentCrash,        // the agent of the host ends, and its workers with it; back after a while
    kPartition,         // no message from host to peer, and back unless one_way
    kCoordinatorCrash,  // the coordinator is gone, and what it had not written
    kDiskFull,          // the coordinator's writes fail
    kWrongStore,        // the coordinator ends, and another one with an empty store is in its place
    // Of random scenarios; cluster files have no words for them.
    kUploadsRefused,     // the coordinator takes no files
    kCheckpointDamaged,  // the newest checkpoint of each job is not what was written
    kLeave,    // the agent of the host is told to end within some time; back after a while
    kBitFlip,  // a bit of a parameter of the worker on host/device is another from here on
  };

  Kind kind = Kind::kWorkerCrash;
  double at_seconds = 0;
  double for_seconds =
      0;               // 0: for ever; a second for crashes of agent and coordinator and kWrongStore
  std::string host{};  // of the first three, kAgentCrash, kPartition, kLeave
  std::string device{};  // kWorkerCrash, kPause, kSlowDown, kBitFlip
  std::string peer{};    // kPartition: a host, or "coordinator"
  bool one_way = false;  // kPartition
  // kPartition between hosts, of random scenarios: members of groups lose their connections across
  // it as it begins. Else they wait for its end.
  bool breaks = false;
  double factor = 1;          // kSlowDown, >= 1
  double within_seconds = 0;  // kLeave, > 0
  std::size_t element = 0;    // kBitFlip: of the parameters
  unsigned bit = 0;           // kBitFlip: of its 32
};

// A cluster as a file describes it. Names are unique and known; lists are not empty.
struct ClusterModel {
  std::vector<HostModel> hosts{};
  std::vector<GroupLink> between{};
  // Between two workers of one host.
  LinkModel local{.latency_seconds = 20e-6, .bytes_per_second = 4e9};
  Algorithm algorithm = Algorithm::kMesh;
  ControlModel control{};
  std::vector<Fault> faults{};
};

}  // namespace tactus::simulator
