// Makes a cluster file's faults happen at their times.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/agent.h"
#include "simulator/checkers.h"
#include "simulator/cluster_model.h"
#include "simulator/coordinator.h"
#include "simulator/network.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {

// The name that stands for the coordinator in a partition.
inline constexpr const char* kCoordinatorPeer = "coordinator";

// What faults act on. All outlive the simulation. Agents stand in the order of the cluster's hosts.
struct FaultTargets {
  Scheduler& scheduler;
  Network& network;
  Checkers& checkers;
  Coordinator& coordinator;
  std::vector<std::unique_ptr<Agent>>& agents;
  // Connections of groups from one host to another break: who is on the first finds the others'
  // closed.
  std::function<void(std::size_t from, std::size_t to)> break_links;
};

// A state that lasts from the first of its causes to the last's end, however they overlap.
class Overlap {
 public:
  // A cause begins or ends. True: the state does.
  bool Begin() { return causes_++ == 0; }
  bool End() { return --causes_ == 0; }

 private:
  int causes_ = 0;
};

// Schedules every fault and counts those that took effect. One thread.
class FaultInjection {
 public:
  FaultInjection(const ClusterModel& cluster, FaultTargets targets);

  // Schedules them all. Requires: names are known, ranges hold.
  void Start();

  std::uint64_t happened() const { return happened_; }

 private:
  // A host from the coordinator, each way for itself.
  struct Partitioned {
    Overlap up{};
    Overlap down{};
  };

  void Happen(const Fault& fault);
  void Disturb(const Fault& fault);
  void CrashWorker(const Fault& fault);
  void Pause(const Fault& fault);
  void SlowDown(const Fault& fault);
  void CrashAgent(const Fault& fault);
  void Partition(const Fault& fault);
  void PartitionFromCoordinator(const Fault& fault);
  void CrashCoordinator(const Fault& fault);
  void FillDisk(const Fault& fault);
  void TakeWrongStore(const Fault& fault);
  void BringBack(const Fault& fault, std::function<void()> back);
  void RefuseUploads(const Fault& fault);
  void Leave(const Fault& fault);
  void FlipBit(const Fault& fault);

  Agent& AgentOn(const std::string& host);
  std::size_t IndexOf(const std::string& host) const;
  Instant EndOf(const Fault& fault) const;
  Duration TimeToRegroup() const;
  void AtEnd(const Fault& fault, std::function<void()> callback);

  const ClusterModel& cluster_;
  const FaultTargets targets_;
  std::vector<Partitioned> from_coordinator_;  // by host
  Overlap disk_full_;
  Overlap refusing_;
  std::uint64_t happened_ = 0;
};

}  // namespace tactus::simulator
