#include "policies/micro_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

Observations Seen(const RoundFacts& facts) {
  const Plan plan{.version = 1, .batch_sizes = std::vector<std::uint32_t>(facts.speeds.size(), 32)};
  Observations seen;
  seen.Start({.members = static_cast<std::uint32_t>(facts.speeds.size())});
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.count = 5}, facts);
  return seen;
}

using Sizes = std::vector<std::uint32_t>;

TEST(MicroBatchTest, StepsTakeAQuarterOfTheTransfer) {
  // A step of 64 samples lasts 0.5 s, a quarter of the transfer 0.25 s.
  EXPECT_EQ(MicroBatches(Seen({.speeds = {96, 32}, .transfer_seconds = 1}), 64, {}),
            (Sizes{24, 8}));
}

TEST(MicroBatchTest, NeverMoreThanTheJobsOwnBatchNorFarBelowIt) {
  EXPECT_EQ(MicroBatches(Seen({.speeds = {96, 32}, .transfer_seconds = 100}), 64, {}),
            (Sizes{48, 16}));
  EXPECT_EQ(MicroBatches(Seen({.speeds = {96, 32}, .transfer_seconds = 0.001}), 64, {}),
            (Sizes{12, 4}));
}

TEST(MicroBatchPropertyTest, SizesKeepTheBoundsAndTimesAreEqualToASample) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    RoundFacts facts{.speeds = {}, .transfer_seconds = 0.01 + 3 * rng.Uniform()};
    const std::uint64_t members = 1 + rng.Below(12);
    for (std::uint64_t i = 0; i < members; ++i) {
      facts.speeds.push_back(50 * std::exp(3 * rng.Uniform()));
    }
    const BatchOptions options{.batch_min = 1 + static_cast<std::uint32_t>(rng.Below(4)),
                               .batch_max = 40 + static_cast<std::uint32_t>(rng.Below(100))};
    const std::uint64_t total = members * 32;

    const Sizes sizes = MicroBatches(Seen(facts), total, options);

    const double step =
        static_cast<double>(total) / std::accumulate(facts.speeds.begin(), facts.speeds.end(), 0.0);
    const double seconds =
        std::clamp(facts.transfer_seconds / 4, MicroBatch::kShareMin * step, step);
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      ASSERT_GE(sizes[rank], options.batch_min) << "seed " << seed;
      ASSERT_LE(sizes[rank], options.batch_max) << "seed " << seed;
      if (sizes[rank] == options.batch_min || sizes[rank] == options.batch_max) continue;
      ASSERT_NEAR(sizes[rank], seconds * facts.speeds[rank], 0.51) << "seed " << seed;
    }
  }
}

// Speeds 1, 0.75, 0.5 and 0.25, a transfer as long as two steps.
VirtualJobOptions Unequal(const std::string& batch, const std::string& synchronization) {
  VirtualJobOptions options{
      .workers = {{.speed = 400}, {.speed = 300}, {.speed = 200}, {.speed = 100}},
      .transfer_seconds = 0.256,
      .noise = 0.05};
  options.planner.batch_policy = batch;
  options.planner.synchronization.policy = synchronization;
  return options;
}

TEST(MicroBatchTest, DelayedMembersComputeNearlyAllTheTime) {
  VirtualJob job(Unequal("abs", "delayed"));

  job.Run(500);

  EXPECT_GT(job.samples() / job.seconds(), 0.97 * 1000);
  EXPECT_GE(job.DecisionsOf(Axis::kBatch).size(), 1u);
  EXPECT_LE(job.DecisionsOf(Axis::kBatch).size(), 4u);
}

TEST(MicroBatchTest, RoundsAreShorterThanWithProportionalShares) {
  VirtualJob elastic(Unequal("abs", "delayed"));
  VirtualJob proportional(Unequal("proportional", "delayed"));

  elastic.Run(500);
  proportional.Run(500);

  // At the same samples a second, so that more updates are made.
  EXPECT_LT(elastic.seconds(), 0.9 * proportional.seconds());
}

TEST(MicroBatchTest, AChangeOfTheSynchronizationBringsItsSizesInTheSamePlan) {
  VirtualJobOptions options = Unequal("abs", "auto");
  options.planner.learning_rate_policy = "adascale";
  options.loss.variance = 1000;
  VirtualJob job(options);

  job.Run(200);

  const auto delayed =
      std::ranges::find(job.plans(), Synchronization::kDelayed, &Plan::synchronization);
  ASSERT_NE(delayed, job.plans().end());
  ASSERT_NE(delayed, job.plans().begin());
  const Plan& before = *std::prev(delayed);
  EXPECT_EQ(std::accumulate(before.batch_sizes.begin(), before.batch_sizes.end(), 0u), 128u);
  EXPECT_NEAR(std::accumulate(delayed->batch_sizes.begin(), delayed->batch_sizes.end(), 0.0), 64, 2)
      << "a quarter of 0.256 s at 1,000 samples/s";
}

}  // namespace
}  // namespace tactus::policies
