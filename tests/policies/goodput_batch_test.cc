// GoodputBatch in a closed loop with workers whose noise scale is known.

#include "policies/goodput_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "policies/gradient_noise.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

// A loss that stands still, so that the noise scale does: 1,000 samples.
VirtualJobOptions Stationary(std::uint64_t seed) {
  VirtualJobOptions options{
      .workers = {{.speed = 400}, {.speed = 400}, {.speed = 200}, {.speed = 100}},
      .transfer_seconds = 0.2,
      .noise = 0.05,
      .seed = seed};
  options.planner.batch_policy = "auto";
  options.planner.learning_rate_policy = "adascale";
  options.loss = {.curvatures = {1e-6}, .variance = 1, .rate = 1e-9};
  const double norm2 = 1e-12 / std::sqrt(1e-6);
  options.loss.variance = 1000 * norm2;
  return options;
}

double Total(const Plan& plan) {
  return std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), 0.0);
}

TEST(GoodputBatchTest, ComesCloseToTheBatchOfTheLargestGoodput) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    VirtualJob job(Stationary(seed));
    const auto goodput = [&](double batch) {
      return batch / (batch / 1100 + 0.2) *
             StatisticalEfficiency({.batch = batch, .base_batch = 32, .noise_samples = 1000});
    };

    job.Run(600);

    // Best is sqrt(D V phi) = 469 samples; it starts with 128.
    const double best = goodput(std::sqrt(0.2 * 1100 * 1000));
    ASSERT_GT(goodput(Total(job.plan())), 0.93 * best) << "seed " << seed;
    ASSERT_LT(goodput(128), 0.80 * best);
  }
}

// A noise scale of 100, and 20 ms of every step are fixed: by samples alone few teach most.
TEST(GoodputBatchTest, ATotalThatWasWrongForItsFixedCostIsTakenBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    VirtualJobOptions options = Stationary(seed);
    options.workers = {{.speed = 1100, .fixed_seconds = 0.02},
                       {.speed = 1100, .fixed_seconds = 0.02}};
    options.loss.variance /= 10;
    options.transfer_seconds = 0.001;
    VirtualJob job(options);
    const auto goodput = [&](double batch) {
      return batch / (batch / 2200 + 0.021) *
             StatisticalEfficiency({.batch = batch, .base_batch = 32, .noise_samples = 100});
    };

    job.RunUntil(120);

    double best = 0;
    for (double batch = 2; batch < 1000; ++batch) best = std::max(best, goodput(batch));
    EXPECT_GT(goodput(Total(job.plan())), 0.95 * best)
        << "seed " << seed << ": " << Total(job.plan());
  }
}

TEST(GoodputBatchTest, NeverMoreThanDoublesAndNeverFlaps) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    VirtualJob job(Stationary(seed));

    job.Run(4000);

    for (std::size_t i = 1; i < job.plans().size(); ++i) {
      const double growth = Total(job.plans()[i]) / Total(job.plans()[i - 1]);
      ASSERT_LE(growth, 2 + 1e-9) << "seed " << seed;
      ASSERT_GE(growth, 0.5 - 0.01) << "seed " << seed;
    }
    ASSERT_LE(job.DecisionsOf(Axis::kBatch).size(), 10u) << "seed " << seed;
  }
}

// In rounds of 1.6 s a second's promise would be one look.
TEST(GoodputBatchTest, ATotalIsPromisedForSomeRoundsAfterTheNoiseScaleIsKnown) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    VirtualJobOptions options = Stationary(seed);
    options.transfer_seconds = 1.5;
    VirtualJob job(options);

    while (Total(job.plan()) == 128 && job.round() < 200) job.Run(1);

    ASSERT_NE(Total(job.plan()), 128);
    constexpr int kKnown = GradientNoise::kUpdatesMin;
    const std::uint64_t decided = job.DecisionsOf(Axis::kBatch).back().round;
    ASSERT_GE(decided, std::uint64_t{kKnown + GoodputBatch::kRoundsMin - 1}) << "seed " << seed;
  }
}

TEST(GoodputBatchTest, KeepsTheBoundsOfEveryWorker) {
  VirtualJobOptions options = Stationary(1);
  options.planner.batch = {.per_worker = 32, .batch_min = 16, .batch_max = 48};
  VirtualJob job(options);

  job.Run(600);

  for (const Plan& plan : job.plans()) {
    for (const std::uint32_t size : plan.batch_sizes) {
      EXPECT_GE(size, 16u);
      EXPECT_LE(size, 48u);
    }
  }
}

// A noise scale of 1: as few samples as possible would teach most.
TEST(GoodputBatchTest, LocalStepsAtAConstantRateKeepTheBatchThatItIsFor) {
  for (const bool local : {false, true}) {
    VirtualJobOptions options = Stationary(1);
    options.loss.variance /= 1000;
    options.transfer_seconds = 0.001;
    options.planner.learning_rate_policy = "constant";
    if (local) options.planner.synchronization = {.policy = "periodic", .period = 4};
    VirtualJob job(options);

    job.RunUntil(120);

    if (local) {
      EXPECT_EQ(Total(job.plan()), 4 * 32);
    } else {
      EXPECT_LT(Total(job.plan()), 2 * 32);
    }
  }
}

TEST(GoodputBatchTest, PromisesWhatIsMeasuredLater) {
  VirtualJob job(Stationary(3));

  job.Run(600);

  int compared = 0;
  for (const Decision& decision : job.measured()) {
    if (decision.metric != "useful samples/s") continue;
    EXPECT_NEAR(*decision.measured_gain, decision.predicted_gain,
                0.05 + 0.3 * decision.predicted_gain);
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

TEST(GoodputBatchTest, WithoutAMeasuredNoiseScaleTheTotalStays) {
  VirtualJobOptions options = Stationary(1);
  options.planner.learning_rate_policy = "constant";
  options.planner.aggregation_policy = "adasum";
  VirtualJob job(options);

  job.Run(300);

  for (const Plan& plan : job.plans()) EXPECT_EQ(Total(plan), 128);
}

}  // namespace
}  // namespace tactus::policies
