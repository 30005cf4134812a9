#include "simulator/fault_injection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::simulator {
namespace {

// How long who crashed stays away when nothing is said.
constexpr Duration kAwayDefault = Seconds(1);

// Messages one after the other from the end of a worker to its peers' next round: that it ended and
// that they lost their group, the next one, their addresses, and all of these; and writes that
// stand in their way.
constexpr int kMessagesToRegroup = 4;
constexpr int kWritesToRegroup = 4;
// The jitter that one of them may have, in its means: more is one in 22,000.
constexpr double kJitters = 10;

}  // namespace

FaultInjection::FaultInjection(const ClusterModel& cluster, FaultTargets targets)
    : cluster_(cluster), targets_(targets), from_coordinator_(cluster.hosts.size()) {}

void FaultInjection::Start() {
  for (const Fault& fault : cluster_.faults) {
    targets_.scheduler.At(Instant{} + Seconds(fault.at_seconds), [this, &fault] { Happen(fault); });
  }
}

void FaultInjection::Happen(const Fault& fault) {
  Disturb(fault);
  switch (fault.kind) {
    case Fault::Kind::kWorkerCrash:
      return CrashWorker(fault);
    case Fault::Kind::kPause:
      return Pause(fault);
    case Fault::Kind::kSlowDown:
      return SlowDown(fault);
    case Fault::Kind::kAgentCrash:
      return CrashAgent(fault);
    case Fault::Kind::kPartition:
      return fault.peer == kCoordinatorPeer ? PartitionFromCoordinator(fault) : Partition(fault);
    case Fault::Kind::kCoordinatorCrash:
      return CrashCoordinator(fault);
    case Fault::Kind::kDiskFull:
      return FillDisk(fault);
    case Fault::Kind::kWrongStore:
      return TakeWrongStore(fault);
    case Fault::Kind::kUploadsRefused:
      return RefuseUploads(fault);
    case Fault::Kind::kCheckpointDamaged:
      happened_ += targets_.coordinator.DamageCheckpoints() > 0 ? 1 : 0;
      return;
    case Fault::Kind::kLeave:
      return Leave(fault);
    case Fault::Kind::kBitFlip:
      return FlipBit(fault);
  }
}

// Longer than it lasts: who was away is found out, dials again, has to load.
void FaultInjection::Disturb(const Fault& fault) {
  if (fault.kind == Fault::Kind::kWorkerCrash) return;
  const Instant end = EndOf(fault);
  if (end == Instant::max()) return targets_.checkers.Disturb(end);
  targets_.checkers.Disturb(end + Seconds(fault.within_seconds) + Checkers::kAftermath);
}

void FaultInjection::FlipBit(const Fault& fault) {
  Worker* worker = AgentOn(fault.host).WorkerOn(fault.device);
  if (worker == nullptr || !worker->training()) return;
  ++happened_;
  targets_.checkers.OnFlipped(*worker->training());
  worker->FlipBit(fault.element, fault.bit);
}

void FaultInjection::CrashWorker(const Fault& fault) {
  Agent& agent = AgentOn(fault.host);
  const Worker* const worker = agent.WorkerOn(fault.device);
  happened_ += worker != nullptr ? 1 : 0;
  // Streams that break are dialled a second later, again and again, and a worker is given two.
  const bool streams_hold = cluster_.control.duplicate_share == 0;
  if (worker != nullptr && streams_hold) {
    const WorkerOrder& order = worker->order();
    const Instant now = targets_.scheduler.now();
    if (worker->training()) {
      targets_.checkers.OnKilled(order.job, order.worker, TimeToRegroup(), now);
    } else {
      targets_.checkers.OnKilledBetweenGroups(order.job, order.worker, now);
    }
  }
  agent.KillWorker(fault.device);
}

void FaultInjection::Pause(const Fault& fault) {
  Worker* worker = AgentOn(fault.host).WorkerOn(fault.device);
  if (worker == nullptr) return;
  ++happened_;
  const Instant until = EndOf(fault);
  worker->PauseUntil(until);
  targets_.checkers.OnHarm(worker->order().job);
  if (const auto key = worker->training()) targets_.checkers.Excuse(*key, until);
}

void FaultInjection::SlowDown(const Fault& fault) {
  ++happened_;
  AgentOn(fault.host).DeviceNamed(fault.device).SlowDown(fault.factor, EndOf(fault));
  // The longest round so far says nothing of those to come.
  targets_.checkers.ExcuseAll(EndOf(fault));
}

void FaultInjection::CrashAgent(const Fault& fault) {
  Agent& agent = AgentOn(fault.host);
  if (!agent.alive()) return;
  ++happened_;
  agent.Crash();
  const Duration away = fault.for_seconds > 0 ? Seconds(fault.for_seconds) : kAwayDefault;
  targets_.scheduler.After(away, [&agent] { agent.Start(); });
}

void FaultInjection::Partition(const Fault& fault) {
  ++happened_;
  const std::size_t host = IndexOf(fault.host);
  const std::size_t peer = IndexOf(fault.peer);
  targets_.checkers.OnHostHarmed(fault.host);
  targets_.checkers.OnHostHarmed(fault.peer);
  targets_.network.Block(host, peer, EndOf(fault));
  if (fault.breaks) targets_.break_links(host, peer);
  if (!fault.one_way) targets_.network.Block(peer, host, EndOf(fault));
  if (!fault.one_way && fault.breaks) targets_.break_links(peer, host);
  targets_.checkers.ExcuseAll(EndOf(fault));
}

void FaultInjection::PartitionFromCoordinator(const Fault& fault) {
  ++happened_;
  Agent& agent = AgentOn(fault.host);
  // Longer than a job waits for anybody.
  if (EndOf(fault) - targets_.scheduler.now() >= job::JobSettings{}.hold) {
    targets_.checkers.OnHostHarmed(fault.host);
  }
  Partitioned& ways = from_coordinator_[IndexOf(fault.host)];
  if (ways.up.Begin()) agent.CutUp(true);
  if (!fault.one_way && ways.down.Begin()) agent.CutDown(true);
  targets_.checkers.HoldUpCheckpoints(EndOf(fault));
  targets_.checkers.OnCoordinatorAway(targets_.scheduler.now());
  AtEnd(fault, [this, &fault, &agent, &ways] {
    if (!fault.one_way && ways.down.End()) agent.CutDown(false);
    if (!ways.up.End()) return;
    agent.CutUp(false);
    targets_.checkers.OnCoordinatorBack(targets_.scheduler.now());
  });
}

void FaultInjection::CrashCoordinator(const Fault& fault) {
  if (!targets_.coordinator.up()) return;
  ++happened_;
  targets_.coordinator.Crash();
  BringBack(fault, [this] { targets_.coordinator.Start(); });
}

// The coordinator is away from now on, until `back` at the fault's end.
void FaultInjection::BringBack(const Fault& fault, std::function<void()> back) {
  targets_.checkers.OnCoordinatorAway(targets_.scheduler.now());
  const Duration away = fault.for_seconds > 0 ? Seconds(fault.for_seconds) : kAwayDefault;
  targets_.checkers.HoldUpCheckpoints(targets_.scheduler.now() + away);
  targets_.scheduler.After(away, [this, back = std::move(back)] {
    back();
    targets_.checkers.OnCoordinatorBack(targets_.scheduler.now());
  });
}

void FaultInjection::FillDisk(const Fault& fault) {
  ++happened_;
  if (disk_full_.Begin()) targets_.coordinator.SetDiskFull(true);
  targets_.checkers.HoldUpCheckpoints(EndOf(fault));
  targets_.checkers.OnCoordinatorAway(targets_.scheduler.now());
  AtEnd(fault, [this] {
    if (!disk_full_.End()) return;
    targets_.coordinator.SetDiskFull(false);
    targets_.checkers.OnCoordinatorBack(targets_.scheduler.now());
  });
}

// Nobody is told anything by the wrong one, so that it is as good as away.
void FaultInjection::TakeWrongStore(const Fault& fault) {
  if (!targets_.coordinator.up()) return;
  ++happened_;
  targets_.coordinator.Crash();
  targets_.coordinator.SetWrongStore(true);
  targets_.coordinator.Start();
  BringBack(fault, [this] {
    targets_.coordinator.Crash();
    targets_.coordinator.SetWrongStore(false);
    targets_.coordinator.Start();
  });
}

void FaultInjection::RefuseUploads(const Fault& fault) {
  ++happened_;
  if (refusing_.Begin()) targets_.coordinator.SetRefusing(true);
  targets_.checkers.HoldUpCheckpoints(EndOf(fault));
  AtEnd(fault, [this] {
    if (refusing_.End()) targets_.coordinator.SetRefusing(false);
  });
}

void FaultInjection::Leave(const Fault& fault) {
  Agent& agent = AgentOn(fault.host);
  if (!agent.alive()) return;
  ++happened_;
  agent.Leave(Seconds(fault.within_seconds), [this, &agent, away = fault.for_seconds] {
    targets_.scheduler.After(Seconds(away), [&agent] { agent.Start(); });
  });
}

Agent& FaultInjection::AgentOn(const std::string& host) { return *targets_.agents[IndexOf(host)]; }

std::size_t FaultInjection::IndexOf(const std::string& host) const {
  const auto found = std::ranges::find(cluster_.hosts, host, &HostModel::name);
  TACTUS_CHECK(found != cluster_.hosts.end());
  return static_cast<std::size_t>(found - cluster_.hosts.begin());
}

Instant FaultInjection::EndOf(const Fault& fault) const {
  if (fault.for_seconds <= 0) return Instant::max();
  return targets_.scheduler.now() + Seconds(fault.for_seconds);
}

Duration FaultInjection::TimeToRegroup() const {
  const ControlModel& control = cluster_.control;
  const double message = control.delay_seconds + kJitters * control.jitter_seconds;
  return Seconds(kMessagesToRegroup * message + kWritesToRegroup * control.persist_seconds) +
         Group::kResetDelay;
}

void FaultInjection::AtEnd(const Fault& fault, std::function<void()> callback) {
  const Instant end = EndOf(fault);
  if (end != Instant::max()) targets_.scheduler.At(end, std::move(callback));
}

}  // namespace tactus::simulator
