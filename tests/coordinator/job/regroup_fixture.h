// A group that falls apart under workers who go on, for tests.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {

inline constexpr const char* kThirdKilled = "worker 3 on node b was ended by signal 9 (SIGKILL)";

// Workers 1 and 2 on node a, 3 on node b; one round was reported.
class JobRegroupTest : public testing::Test {
 protected:
  explicit JobRegroupTest(JobRecord job = JobOnce(1)) : rig_(std::move(job)) { rig_.ToRunning(); }

  Actions Kill(std::uint64_t worker) {
    return rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 9});
  }
  // rounds: nothing: as many as were reported.
  Actions Lose(std::uint64_t worker, std::optional<std::uint64_t> rounds = {},
               std::vector<std::uint32_t> blames = {}) {
    return rig_.Step(
        Said(worker, GroupLostMessage{.generation = record().generation,
                                      .rounds = rounds.value_or(present().progress.rounds),
                                      .reason = "reset by peer",
                                      .blames = std::move(blames)}));
  }
  Actions Wait(double seconds) { return rig_.StepAt(rig_.seconds() + seconds, Ticked{}); }
  // The members of the present generation say where they are.
  Actions Meet() {
    Actions last;
    const std::vector<MemberRecord> members = record().members;
    for (const MemberRecord& member : members) {
      last = rig_.Step(Said(member.worker.value,
                            EndpointMessage{.generation = record().generation, .endpoint = "e"}));
    }
    return last;
  }
  // And report a round.
  Actions Report(std::uint64_t round) {
    Actions all;
    const std::vector<MemberRecord> members = record().members;
    const std::vector<std::uint32_t> sizes(members.size(), 32);
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
      const Actions actions = rig_.Step(Said(
          members[rank].worker.value,
          ReportOf(
              rank,
              {.round = round, .plan_version = record().newest_plan.version, .batch_sizes = sizes},
              record().generation)));
      all.insert(all.end(), actions.begin(), actions.end());
    }
    return all;
  }
  // Worker 3 is killed, and the others form the next group.
  Actions Regroup() {
    Kill(3);
    Lose(1);
    return Lose(2);
  }
  std::vector<WorkerId> Members() const {
    std::vector<WorkerId> workers;
    for (const MemberRecord& member : record().members) workers.push_back(member.worker);
    return workers;
  }
  const JobRecord& record() const { return rig_.record(); }
  // With what is not written every time.
  const JobRecord& present() { return *rig_.cluster().Find(JobId{1}); }

  Rig rig_;
};

}  // namespace tactus::job
