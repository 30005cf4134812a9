// A group whose members change while it trains, for tests.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/coordinator/job/regroup_fixture.h"

namespace tactus::job {

inline constexpr const char* kJoin = "worker 4 on node c, worker 5 on node c join";

class JobResizeTest : public JobRegroupTest {
 protected:
  explicit JobResizeTest(std::uint32_t least = 1)
      : JobResizeTest(Job(1, {.workers_min = least, .workers_max = 5, .retries = 0})) {}
  explicit JobResizeTest(JobRecord job) : JobRegroupTest(std::move(job)) {}

  // A node c of two devices, on which workers 4 and 5 load.
  Actions Grow() {
    rig_.Step(Join("c", 2));
    return Wait(5);
  }
  // speed: that it tried out; 0: it did not.
  Actions SayReady(std::uint64_t worker, double speed = 0) {
    ReadyMessage ready = Ready();
    ready.samples_per_second = speed;
    return rig_.Step(Said(worker, ready));
  }
  // All members leave their group, as they were asked to.
  Actions Leave(std::uint64_t rounds = 1) {
    Actions last;
    for (const WorkerId worker : Members()) {
      last = rig_.Step(Said(worker.value, GroupLostMessage{.generation = record().generation,
                                                           .rounds = rounds,
                                                           .reason = "asked to",
                                                           .planned = true}));
    }
    return last;
  }
  // Both are in.
  Actions Join2() {
    Grow();
    SayReady(4);
    SayReady(5);
    return Leave();
  }
  static bool IsRegroup(const StopMessage& stop) { return stop.suspend && stop.regroup; }
  std::vector<WorkerId> Joiners() const {
    std::vector<WorkerId> workers;
    for (const MemberRecord& joiner : record().joiners) workers.push_back(joiner.worker);
    return workers;
  }
};

}  // namespace tactus::job
