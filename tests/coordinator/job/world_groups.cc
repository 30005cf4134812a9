// How the world's workers meet, lose their groups, and meet again.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/coordinator/job/rig.h"
#include "tests/coordinator/job/world.h"

namespace tactus::job {

void World::Receive(WorkerId id, Worker& worker, const GroupMessage& message) {
  Group& group = groups_[worker.job];
  if (message.generation != group.generation) {
    // Those between may have been told of to nobody who is heard.
    EXPECT_GT(message.generation, group.generation);
    EXPECT_GT(message.plan.version, group.newest);
    group = {};
    group.generation = message.generation;
    group.newest = message.plan.version;
    group.members.resize(message.size);
    group.plans[message.plan.version] = message.plan;
    const std::uint64_t first =
        message.rounds.empty() ? worker.next_round : std::ranges::max(message.rounds);
    group.round_versions[first] = message.plan.version;
  }
  EXPECT_EQ(message.plan, group.plans.at(group.newest));
  group.members.at(message.rank) = id;
  if (worker.stage == Stage::kFinished) return;
  if (worker.stage != Stage::kWaiting && worker.stage != Stage::kLost) {
    worker.left = worker.generation;
  }
  EXPECT_TRUE(message.rounds.empty() || message.rounds.size() == message.size);
  worker.told = message.rounds.empty() ? worker.next_round : message.rounds.at(message.rank);
  worker.generation = message.generation;
  worker.rank = message.rank;
  worker.offered = message.plan.version;
  worker.awaits = message.rounds.empty() ? worker.next_round : std::ranges::max(message.rounds);
  worker.stage = Stage::kMeeting;
}

// With the others they have the state of the most advanced.
void World::Receive(WorkerId, Worker& worker, const PeersMessage& message) {
  if (message.generation != worker.generation) return;
  EXPECT_EQ(message.endpoints.size(), groups_.at(worker.job).members.size());
  if (worker.stage != Stage::kWaitingForPeers) return;
  EXPECT_EQ(worker.told, worker.next_round);
  EXPECT_TRUE(worker.awaits <= worker.next_round + 1 || worker.next_round == 0);
  worker.stage = Stage::kTraining;
  worker.next_round = worker.awaits;
}

void World::BreakGroup(const Worker& worker) {
  const auto group = groups_.find(worker.job);
  if (group != groups_.end()) group->second.broken = true;
}

bool World::LosesGroup(const Worker& worker) {
  if (!Survives(worker) || worker.stage != Stage::kTraining || rng_.Below(4) == 0) return false;
  const Group& group = groups_.at(worker.job);
  if (worker.generation != group.generation) return false;
  return group.broken || std::ranges::any_of(group.members, [&](WorkerId member) {
           return !workers_.contains(member) && !group.finished.contains(member);
         });
}

void World::LoseGroup(WorkerId id, Worker& worker) {
  worker.stage = Stage::kLost;
  Give(Said(id.value, GroupLostMessage{.generation = worker.generation,
                                       .rounds = worker.next_round,
                                       .reason = "reset by peer",
                                       .blames = {static_cast<std::uint32_t>(rng_.Below(4))}}));
}

// Who has left waits with it, so that nobody is told to be lost.
void World::LeaveGroup(WorkerId id, Worker& worker) {
  worker.stage = Stage::kLost;
  Give(Said(id.value, GroupLostMessage{.generation = worker.generation,
                                       .rounds = worker.next_round,
                                       .reason = "asked to",
                                       .planned = true}));
}

void World::CheckRegroup(const JobRecord& record, const JobRecord& before) {
  for (const MemberRecord& joiner : before.joiners) {
    const auto is_it = [&](const MemberRecord& one) { return one.worker == joiner.worker; };
    const bool stays = std::ranges::any_of(record.joiners, is_it);
    const bool joined = std::ranges::any_of(record.members, is_it);
    tally_.joined += joined ? 1 : 0;
    tally_.unjoined += stays || joined ? 0 : 1;
  }
  if (record.regroups == before.regroups && record.resizes == before.resizes) return;
  EXPECT_EQ(record.regroups + record.resizes, before.regroups + before.resizes + 1);
  EXPECT_LE(record.members.size(), record.settings.workers_max);
  EXPECT_EQ(record.generation, before.generation + 1);
  EXPECT_EQ(record.attempts.size(), before.attempts.size());
  EXPECT_GE(record.progress.rounds, before.progress.rounds);
  auto at = before.members.begin();
  std::size_t stay = 0;
  for (const MemberRecord& member : record.members) {
    at = std::ranges::find(at, before.members.end(), member.worker, &MemberRecord::worker);
    if (at == before.members.end()) break;
    ++stay;
  }
  for (std::size_t rank = stay; rank < record.members.size(); ++rank) {
    EXPECT_TRUE(std::ranges::any_of(before.joiners, [&](const MemberRecord& joiner) {
      return joiner.worker == record.members[rank].worker;
    })) << "neither in the group before, in this order, nor loaded beside it";
  }
  if (record.resizes > before.resizes) {
    EXPECT_TRUE(stay < before.members.size() || stay < record.members.size());
    EXPECT_GE(record.members.size(), record.settings.workers_min);
    tally_.parted += static_cast<int>(before.members.size() - stay);
    return;
  }
  ++tally_.regrouped;
  tally_.again += stay == before.members.size() ? 1 : 0;
}

}  // namespace tactus::job
