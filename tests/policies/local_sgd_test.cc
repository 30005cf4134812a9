#include "policies/local_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace tactus::policies {
namespace {

LocalSgdProblem PaperProblem(double seconds) {
  return {.times = {.members = 16, .transfer_seconds = 1}, .rate = .08, .seconds = seconds};
}

LocalSgdProblem RandomProblem(Rng& rng) {
  return {.times = {.members = static_cast<std::uint32_t>(1 + rng.Below(32)),
                    .step_seconds = 0.1 + rng.Uniform(),
                    .transfer_seconds = rng.Uniform()},
          .loss_gap = 0.1 + rng.Uniform(),
          .rate = 0.01 + 0.1 * rng.Uniform(),
          .smoothness = 0.5 + rng.Uniform(),
          .variance = 0.1 + rng.Uniform(),
          .seconds = 100 + 1000 * rng.Uniform()};
}

// Vectors of section 4.h of the specification.
TEST(LocalSgdPaperTest, V1Speedup) {
  EXPECT_NEAR(LocalSgdSpeedup(1, 10), 1.81818182, 1e-8);
  EXPECT_NEAR(LocalSgdSpeedup(4, 20), 4.16666667, 1e-8);
  EXPECT_NEAR(LocalSgdSpeedup(.9, 10), 1.74311927, 1e-8);
  EXPECT_NEAR(LocalSgdSpeedup(.5, 5), 1.36363636, 1e-8);
}

TEST(LocalSgdPaperTest, V2ExponentialStepTimes) {
  const LocalSgdTimes times{
      .members = 16, .transfer_seconds = 1, .step_times = StepTimes::kExponential};

  EXPECT_NEAR(ExponentialSlowest(16, 1), 3.38072899, 2e-8);
  EXPECT_NEAR(ExponentialSlowest(16, 10), 1.63373549, 2e-8);
  EXPECT_NEAR(ExponentialSlowest(4, 1), 2.08333333, 2e-8);
  EXPECT_NEAR(ExponentialSlowest(4, 20), 1.2379356, 2e-8);
  EXPECT_NEAR(LocalSgdStepSeconds(times, 1), 4.38072899, 2e-8);
  EXPECT_NEAR(LocalSgdStepSeconds(times, 10), 1.73373549, 2e-8);
  EXPECT_NEAR(LocalSgdStepSeconds(times, 1) / LocalSgdStepSeconds(times, 10), 2.52675741, 2e-8);
}

TEST(LocalSgdPaperTest, V3OptimalPeriodBoundAndRateCondition) {
  const LocalSgdProblem problem = PaperProblem(500);

  EXPECT_NEAR(LocalSgdOptimalPeriod(problem), 2.79508497, 1e-8);
  EXPECT_NEAR(LocalSgdErrorBound(problem, 1), 0.105, 1e-9);
  EXPECT_NEAR(LocalSgdErrorBound(problem, 2), 0.0864, 1e-9);
  EXPECT_NEAR(LocalSgdErrorBound(problem, 3), 0.0844666667, 1e-9);
  EXPECT_NEAR(LocalSgdErrorBound(problem, 20), 0.1791, 1e-9);
  EXPECT_NEAR(LocalSgdOptimalPeriod(PaperProblem(2000)), 1.39754249, 1e-8);
  EXPECT_NEAR(LocalSgdOptimalPeriod(PaperProblem(20000)), 0.441941738, 1e-9);
  EXPECT_NEAR(LocalSgdRateCondition(problem, 12), 0.9248, 1e-12);
  EXPECT_NEAR(LocalSgdRateCondition(problem, 13), 1.0784, 1e-12);
}

TEST(LocalSgdTest, ExponentialTimesOfOneStepGiveTheHarmonicNumber) {
  double harmonic = 0;
  for (std::uint32_t members = 1; members <= 256; ++members) {
    harmonic += 1.0 / members;

    ASSERT_NEAR(ExponentialSlowest(members, 1), harmonic, 1e-8) << members << " members";
  }
}

TEST(LocalSgdTest, ALoneMemberIsNeverSlow) {
  for (std::uint32_t period = 1; period <= 65'536; period *= 2) {
    ASSERT_NEAR(ExponentialSlowest(1, period), 1, 1e-8) << "period " << period;
  }
}

TEST(LocalSgdTest, WithoutVarianceTheLongestPeriodIsTheBest) {
  LocalSgdProblem problem = PaperProblem(500);
  problem.variance = 0;

  EXPECT_EQ(LocalSgdOptimalPeriod(problem), std::numeric_limits<double>::infinity());
}

TEST(LocalSgdOracleTest, SlowestAgreesWithDrawingTimes) {
  Rng rng(1);
  constexpr int kDraws = 20'000;
  constexpr std::uint32_t kMembers = 5;
  constexpr std::uint32_t kPeriod = 3;
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    double slowest = 0;
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      double time = 0;
      for (std::uint32_t k = 0; k < kPeriod; ++k) time -= std::log(1 - rng.Uniform()) / kPeriod;
      slowest = std::max(slowest, time);
    }
    sum += slowest;
  }

  // One draw deviates by about 0.6: 4 standard errors.
  EXPECT_NEAR(sum / kDraws, ExponentialSlowest(kMembers, kPeriod), 4 * 0.6 / std::sqrt(kDraws));
}

TEST(LocalSgdPropertyTest, SpeedupIsOneAtPeriodOneAndComesNearOnePlusTheRatio) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double ratio = 10 * rng.Uniform();
    const auto period = static_cast<std::uint32_t>(1 + rng.Below(100));

    ASSERT_EQ(LocalSgdSpeedup(ratio, 1), 1) << "seed " << seed;
    ASSERT_LT(LocalSgdSpeedup(ratio, period), 1 + ratio) << "seed " << seed;
    ASSERT_LT(LocalSgdSpeedup(ratio, period), LocalSgdSpeedup(ratio, period + 1))
        << "seed " << seed;
    ASSERT_NEAR(LocalSgdSpeedup(ratio, 1'000'000'000), 1 + ratio, 1e-6) << "seed " << seed;
  }
}

TEST(LocalSgdPropertyTest, SpeedupIsTheRatioOfStepTimes) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const LocalSgdTimes times = RandomProblem(rng).times;
    const auto period = static_cast<std::uint32_t>(1 + rng.Below(100));

    ASSERT_NEAR(LocalSgdStepSeconds(times, 1) / LocalSgdStepSeconds(times, period),
                LocalSgdSpeedup(times.transfer_seconds / times.step_seconds, period), 1e-12)
        << "seed " << seed;
  }
}

TEST(LocalSgdOracleTest, BestPeriodIsANeighbourOfTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const LocalSgdProblem problem = RandomProblem(rng);
    std::uint32_t best = 1;
    for (std::uint32_t period = 2; period <= 500; ++period) {
      if (LocalSgdErrorBound(problem, period) < LocalSgdErrorBound(problem, best)) best = period;
    }
    const double optimum = LocalSgdOptimalPeriod(problem);

    ASSERT_GE(best, std::max(1.0, std::floor(optimum))) << "seed " << seed;
    ASSERT_LE(best, std::max(1.0, std::ceil(optimum))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
