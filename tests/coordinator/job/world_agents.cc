// What happens to the world's agents.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/coordinator/job/rig.h"
#include "tests/coordinator/job/world.h"

namespace tactus::job {

void World::Mark() {
  const std::string name = "n" + std::to_string(rng_.Below(agents_.size()));
  const std::uint64_t dice = rng_.Below(4);
  Give(NodeMarked{{.name = name, .cordoned = dice == 0 || dice == 1, .draining = dice == 0}});
  if (dice == 2) Forget(name);
}

// An agent that comes back tells what runs there, as it tells a coordinator that restarted.
void World::Forget(const std::string& name) {
  Agent& agent = agents_.at(name);
  const bool gone = !agent.connected && cluster_->JobOn(name).empty();
  Give(NodeDeleted{name});
  EXPECT_NE(cluster_->membership().nodes().contains(name), gone) << name;
  if (!gone) return;
  ++tally_.forgotten;
  agent.known = false;
  agent.fresh = true;
  agent.waiting.clear();
}

// An agent that is not connected says so when it is back.
void World::BreakOrMend() {
  auto chosen = agents_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(rng_.Below(agents_.size())));
  auto& [name, agent] = *chosen;
  const std::string device =
      "cpu:" + std::to_string(rng_.Below(static_cast<std::uint64_t>(agent.devices)));
  if (agent.faults.erase(device) == 0) agent.faults[device] = "broken";
  ++tally_.faults;
  if (agent.connected) Give(DeviceFaultsChanged{.node = name, .faults = agent.faults});
}

void World::Join() {
  for (const auto& [name, agent] : agents_) {
    if (!agent.connected || rng_.Below(10) == 0) return Join(name);
  }
}

void World::Join(const std::string& name) {
  Agent& agent = agents_.at(name);
  if (agent.known && agent.fresh) {
    agent.waiting.clear();
    Give(NodeLost{.node = name, .reason = "the agent was started again"});
  }
  NodeJoined event{.node = name,
                   .devices = Devices("cpu", agent.devices),
                   .same_incarnation = !agent.fresh,
                   .leave = agent.leave};
  for (DeviceRecord& device : event.devices) {
    const auto fault = agent.faults.find(device.name);
    if (fault != agent.faults.end()) device.fault = fault->second;
  }
  for (const auto& [id, worker] : workers_) {
    if (worker.node != name) continue;
    event.running_workers.push_back(id);
    tally_.resurfaced += agent.known && !agent.connected && worker.stage == Stage::kTraining;
  }
  agent.connected = agent.known = true;
  agent.fresh = false;
  for (const Action& action : std::exchange(agent.waiting, {})) Apply({action});
  Give(event);
}

void World::LoseOrKillAgent() {
  auto chosen = agents_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(rng_.Below(agents_.size())));
  auto& [name, agent] = *chosen;
  const bool killed = rng_.Below(2) == 0;
  if (killed) {
    std::erase_if(workers_, [&](const auto& entry) { return entry.second.node == name; });
    agent.fresh = true;
    agent.leave.reset();
  }
  // A killed agent may be back before anybody missed it.
  if (killed && rng_.Below(2) == 0) return Join(name);
  if (!std::exchange(agent.connected, false)) return;
  ++tally_.missed;
  Give(NodeUnreachable{.node = name, .reason = "no heartbeat"});
}

// What was said is kept, whether its workers had the time or not.
void World::LeaveOrGo() {
  auto chosen = agents_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(rng_.Below(agents_.size())));
  auto& [name, agent] = *chosen;
  if (!agent.connected) return;
  if (!agent.leave) {
    ++tally_.left;
    agent.leave = {.reason = "SIGTERM", .within = Seconds(rng_.Uniform() * 30)};
    Give(NodeLeaving{.node = name, .leave = *agent.leave});
    // The agent asks where its stream breaks.
    return rng_.Below(2) == 0 ? Suspend(name) : void();
  }
  std::erase_if(workers_, [node = name](const auto& entry) { return entry.second.node == node; });
  agent.fresh = true;
  agent.connected = false;
  agent.leave.reset();
  Give(NodeUnreachable{.node = name, .reason = "no heartbeat"});
}

// As the agent asks them itself: who does not train yet leaves.
void World::Suspend(const std::string& node) {
  const std::map<WorkerId, Worker> running = workers_;
  for (const auto& [id, before] : running) {
    if (before.node != node || !workers_.contains(id)) continue;
    Worker& worker = workers_.at(id);
    if (worker.stage == Stage::kTraining) {
      const Group& group = groups_.at(worker.job);
      if (worker.generation != group.generation || group.stop_round) continue;
      Receive(id, worker, StopMessage{.reason = "SIGTERM", .suspend = true});
    } else if (worker.stage != Stage::kFinished) {
      Exit(id, 0, 0);
    }
  }
}

// One link of a node is not asked for twice before it is known.
void World::Check(const ProbeLink& action) {
  EXPECT_NE(action.from, action.to);
  EXPECT_TRUE(agents_.contains(action.from));
  EXPECT_TRUE(agents_.contains(action.to));
  for (const LinkProbed& other : probes_) EXPECT_NE(other.to, action.to);
  probes_.push_back({.from = action.from, .to = action.to, .bytes_per_second = 1e6});
}

void World::Tick() {
  if (wake_ && rng_.Below(4) == 0) {
    seconds_ = std::max(seconds_, ToSeconds(wake_->time_since_epoch()) + 1e-6);
  }
  wake_.reset();
  for (const LinkProbed& probed : std::exchange(probes_, {})) Give(probed);
  Give(Ticked{});
}

}  // namespace tactus::job
