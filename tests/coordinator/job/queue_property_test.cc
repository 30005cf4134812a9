#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/coordinator/job/queue_world.h"

namespace tactus::job {
namespace {

constexpr std::uint64_t kSeeds = 1000;

TEST(QueuePropertyTest, NobodyStarvesNoPriorityIsInvertedAndGangsAreWhole) {
  QueueWorld::Tally all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    QueueWorld world(seed);

    world.Run();

    if (HasFailure()) return;
    all.suspensions += world.tally().suspensions;
    all.preempted += world.tally().preempted;
    all.lent += world.tally().lent;
    all.resized += world.tally().resized;
    all.grown += world.tally().grown;
    all.shrunk += world.tally().shrunk;
    all.jobs += world.tally().jobs;
  }
  EXPECT_GT(all.suspensions, 1000);
  EXPECT_GT(all.preempted, 500);
  EXPECT_GT(all.lent, 500);
  EXPECT_GT(all.resized, 200);
  EXPECT_GT(all.grown, 200);
  EXPECT_GT(all.shrunk, 50);
  // Nobody is moved to and fro for ever: what arrives and what ends moves a few.
  EXPECT_LT(all.suspensions, 4 * all.jobs);
}

}  // namespace
}  // namespace tactus::job
