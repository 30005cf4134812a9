// ProportionalBatch in a closed loop with workers of its own making: settles, reacts, does not
// flap.

#include <gtest/gtest.h>

#include <set>

#include "policies/proportional_batch.h"
#include "tests/policies/virtual_cluster.h"

namespace tactus::policies {
namespace {

constexpr std::uint32_t kPerWorker = 64;

const std::vector<VirtualWorker>& Unequal() {
  static const std::vector<VirtualWorker> workers = {
      {.speed = 100}, {.speed = 100}, {.speed = 50}, {.speed = 25}};
  return workers;
}

TEST(ProportionalClosedLoopTest, SettlesWithinTenPercentOfTheSpeedsInTwentyRounds) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster({.workers = Unequal(), .noise = 0.03, .seed = seed}, policy);

    cluster.Run(20);

    ASSERT_LT(cluster.WorstShareError(), 0.10) << "seed " << seed;
  }
}

TEST(ProportionalClosedLoopTest, SettlesCloseToTheBestRoundTimeThroughNoiseOfTenPercent) {
  int shares_within_10_percent = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = seed}, policy);

    cluster.Run(20);

    ASSERT_LT(cluster.LongestSeconds(), 1.16 * cluster.IdealSeconds()) << "seed " << seed;
    if (cluster.WorstShareError() < 0.10) ++shares_within_10_percent;
  }
  EXPECT_GE(shares_within_10_percent, 190);
}

TEST(ProportionalClosedLoopTest, ComesAsCloseAsWholeSamplesAllowWithTime) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = seed}, policy);

    cluster.Run(1000);

    // One sample of the slowest (1 / 23.3 = 4.3 %) and the least gain it acts on (3 %).
    ASSERT_LT(cluster.LongestSeconds(), 1.075 * cluster.IdealSeconds()) << "seed " << seed;
  }
}

struct Change {
  std::size_t rank;
  double factor;
  int after_rounds;
};

class ProportionalReactionTest : public testing::TestWithParam<Change> {};

TEST_P(ProportionalReactionTest, ProposesWithinTenRoundsOfAChangeByTwo) {
  const Change change = GetParam();
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = seed}, policy);
    cluster.Run(change.after_rounds);
    const double before = cluster.IdealSeconds();

    cluster.worker(change.rank).speed *= change.factor;
    cluster.Run(10);

    ASSERT_GE(cluster.ProposalsAfter(change.after_rounds), 1) << "seed " << seed;
    cluster.Run(20);
    ASSERT_LT(cluster.LongestSeconds(), 1.16 * cluster.IdealSeconds()) << "seed " << seed;
    ASSERT_NE(cluster.IdealSeconds(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(EitherWay, ProportionalReactionTest,
                         testing::Values(Change{0, 2.0, 40}, Change{0, 0.5, 40}, Change{3, 2.0, 40},
                                         Change{3, 0.5, 40}, Change{0, 2.0, 1000},
                                         Change{0, 0.5, 1000}, Change{3, 2.0, 1000},
                                         Change{3, 0.5, 1000}));

// Proposals that go back to sizes that were in force before.
int Returns(const VirtualCluster& cluster) {
  std::set<std::vector<std::uint32_t>> seen;
  int returns = 0;
  for (const std::vector<std::uint32_t>& sizes : cluster.proposed()) {
    if (!seen.insert(sizes).second) ++returns;
  }
  return returns;
}

class ProportionalFlappingTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ProportionalFlappingTest, NoiseOfTenPercentNeverMovesSharesToAndFro) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ProportionalBatch policy({.per_worker = GetParam()});
    VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = seed}, policy);

    cluster.Run(20'000);

    // The first guess and its corrections, of which a last one may come late.
    ASSERT_LE(cluster.ProposalsAfter(0), 5) << "seed " << seed;
    ASSERT_LE(cluster.ProposalsAfter(200), 1) << "seed " << seed;
    ASSERT_EQ(cluster.ProposalsAfter(5000), 0) << "seed " << seed;
    ASSERT_EQ(Returns(cluster), 0) << "seed " << seed;
  }
}

TEST_P(ProportionalFlappingTest, EqualWorkersKeepEqualShares) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ProportionalBatch policy({.per_worker = GetParam()});
    VirtualCluster cluster(
        {.workers = std::vector<VirtualWorker>(4, {.speed = 100}), .noise = 0.10, .seed = seed},
        policy);

    cluster.Run(5000);

    ASSERT_LE(cluster.ProposalsAfter(0), 2) << "seed " << seed;
    ASSERT_EQ(cluster.ProposalsAfter(500), 0) << "seed " << seed;
    ASSERT_LT(cluster.LongestSeconds(), 1.06 * cluster.IdealSeconds()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, ProportionalFlappingTest, testing::Values(1, 3, 16, 64, 500));

// Noise of 10 % that lasts some 50 rounds, as of a busy host: no estimate can tell it from a change
// of speed, so shares move; but ever less often, and a real change is still answered at once.
TEST(ProportionalClosedLoopTest, LastingNoiseMovesSharesRarely) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster(
        {.workers = Unequal(), .noise = 0.10, .noise_memory = 0.98, .seed = seed}, policy);

    cluster.Run(2000);

    // 21 on average, 25 at most; without the growing threshold 48 on average.
    EXPECT_LT(cluster.ProposalsAfter(0), 33) << "seed " << seed;
    const int before = cluster.round();
    cluster.worker(0).speed /= 2;
    cluster.Run(20);
    EXPECT_GE(cluster.ProposalsAfter(before), 1) << "seed " << seed;
  }
}

TEST(ProportionalClosedLoopTest, RareRoundsTenTimesAsLongDoNotMoveShares) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ProportionalBatch policy({.per_worker = kPerWorker});
    VirtualCluster cluster(
        {.workers = Unequal(), .noise = 0.05, .outlier_chance = 0.01, .seed = seed}, policy);

    cluster.Run(5000);

    ASSERT_LE(cluster.ProposalsAfter(200), 1) << "seed " << seed;
    ASSERT_LT(cluster.LongestSeconds(), 1.08 * cluster.IdealSeconds()) << "seed " << seed;
  }
}

// Every batch costs what `fixed_share` times 64 samples cost on the fastest worker.
std::vector<VirtualWorker> WithFixedCost(double fixed_share) {
  std::vector<VirtualWorker> workers = Unequal();
  for (VirtualWorker& worker : workers) worker.fixed_seconds = fixed_share * 64 / 100;
  return workers;
}

TEST(ProportionalClosedLoopTest, StaysStableAndComesCloserWithAFixedCostOfABatch) {
  for (const double fixed_share : {0.1, 0.3, 1.0, 3.0}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      ProportionalBatch policy({.per_worker = kPerWorker});
      VirtualCluster cluster({.workers = WithFixedCost(fixed_share), .noise = 0.10, .seed = seed},
                             policy);
      const double excess_at_start = cluster.LongestSeconds() / cluster.IdealSeconds() - 1;

      cluster.Run(400);
      const double excess = cluster.LongestSeconds() / cluster.IdealSeconds() - 1;
      cluster.Run(5000);

      ASSERT_LT(excess, 0.25 * excess_at_start) << fixed_share << " seed " << seed;
      ASSERT_LE(cluster.ProposalsAfter(0), 15) << fixed_share << " seed " << seed;
      ASSERT_LE(cluster.ProposalsAfter(3000), 1) << fixed_share << " seed " << seed;
      ASSERT_EQ(Returns(cluster), 0) << fixed_share << " seed " << seed;
      ASSERT_LT(cluster.LongestSeconds(), 1.10 * cluster.IdealSeconds())
          << fixed_share << " seed " << seed;
    }
  }
}

TEST(ProportionalClosedLoopTest, TheSumOfTheBatchesNeverChanges) {
  ProportionalBatch policy({.per_worker = 17});
  VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = 3}, policy);

  for (int round = 0; round < 500; ++round) {
    if (round % 60 == 30) cluster.worker(round % 4).speed *= round % 120 == 30 ? 2 : 0.5;
    cluster.Run(1);

    std::uint64_t sum = 0;
    for (const std::uint32_t size : cluster.sizes()) sum += size;
    ASSERT_EQ(sum, 4 * 17u) << "round " << round;
  }
}

TEST(ProportionalClosedLoopTest, OneSeedGivesOneHistory) {
  ProportionalBatch policy({.per_worker = kPerWorker});
  ProportionalBatch twin({.per_worker = kPerWorker});
  VirtualCluster cluster({.workers = Unequal(), .noise = 0.10, .seed = 5}, policy);
  VirtualCluster same({.workers = Unequal(), .noise = 0.10, .seed = 5}, twin);

  cluster.Run(300);
  same.Run(300);

  EXPECT_GT(cluster.proposed().size(), 1u);
  EXPECT_EQ(cluster.proposed(), same.proposed());
}

}  // namespace
}  // namespace tactus::policies
