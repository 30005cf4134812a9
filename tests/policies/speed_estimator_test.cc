#include "policies/speed_estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace tactus::policies {
namespace {

// Observes `rounds` rounds of 32 samples at `speed`, with log-normal noise.
void ObserveRounds(SpeedEstimator& estimator, Rng& rng, int rounds, double speed, double noise) {
  for (int i = 0; i < rounds; ++i) {
    estimator.Observe(32, 32 / speed * std::exp(noise * rng.Normal()));
  }
}

TEST(SpeedEstimatorTest, KnowsNothingAtFirst) {
  const SpeedEstimator estimator;

  EXPECT_EQ(estimator.observations(), 0);
  EXPECT_EQ(estimator.SamplesPerSecond(), 0);
  EXPECT_EQ(estimator.RelativeError(), 1);
}

TEST(SpeedEstimatorTest, OneRoundGivesASpeedAndNoCertainty) {
  SpeedEstimator estimator;

  estimator.Observe(32, 0.25);

  EXPECT_NEAR(estimator.SamplesPerSecond(), 128, 1e-9);
  EXPECT_EQ(estimator.RelativeError(), 1);
}

TEST(SpeedEstimatorTest, IgnoresRoundsThatSayNothing) {
  SpeedEstimator estimator;

  estimator.Observe(0, 0.25);
  estimator.Observe(32, 0);
  estimator.Observe(32, -1);
  estimator.Observe(32, 1e-10);
  estimator.Observe(32, 1e10);
  estimator.Observe(32, std::numeric_limits<double>::quiet_NaN());
  estimator.Observe(32, std::numeric_limits<double>::infinity());

  EXPECT_EQ(estimator.observations(), 0);
}

TEST(SpeedEstimatorTest, StaysFiniteAtTheEndsOfWhatIsAccepted) {
  SpeedEstimator fastest;
  SpeedEstimator slowest;

  fastest.Observe(std::numeric_limits<std::uint64_t>::max(), SpeedEstimator::kSecondsMin);
  slowest.Observe(1, SpeedEstimator::kSecondsMax);

  EXPECT_TRUE(std::isfinite(fastest.SamplesPerSecond()));
  EXPECT_GT(slowest.SamplesPerSecond(), 0);
}

TEST(SpeedEstimatorTest, SpeedDoesNotDependOnTheBatch) {
  SpeedEstimator estimator;

  for (std::uint64_t samples = 1; samples <= 50; ++samples) {
    estimator.Observe(samples, static_cast<double>(samples) / 80);
  }

  EXPECT_NEAR(estimator.SamplesPerSecond(), 80, 1e-6);
}

TEST(SpeedEstimatorTest, ErrorFallsWithTheRootOfTheRounds) {
  SpeedEstimator estimator;
  Rng rng(1);

  ObserveRounds(estimator, rng, 100, 50, 0.1);
  const double after_100 = estimator.RelativeError();
  ObserveRounds(estimator, rng, 9900, 50, 0.1);

  EXPECT_EQ(estimator.observations(), 10'000);
  EXPECT_NEAR(after_100, 0.01, 0.003);
  EXPECT_NEAR(estimator.RelativeError(), 0.001, 0.0003);
  EXPECT_NEAR(estimator.SamplesPerSecond(), 50, 50 * 0.005);
}

TEST(SpeedEstimatorTest, QuietRoundsDoNotPassForCertainty) {
  SpeedEstimator estimator;

  for (int i = 0; i < 400; ++i) estimator.Observe(32, 0.5);

  EXPECT_DOUBLE_EQ(estimator.Noise(), SpeedEstimator::kNoiseFloor);
  EXPECT_DOUBLE_EQ(estimator.RelativeError(), SpeedEstimator::kNoiseFloor / 20);
}

TEST(SpeedEstimatorTest, ForgetsTheOldSpeedFourRoundsAfterAChangeByTwo) {
  for (const double factor : {2.0, 0.5}) {
    SpeedEstimator estimator;
    Rng rng(1);
    ObserveRounds(estimator, rng, 500, 100, 0.02);

    ObserveRounds(estimator, rng, SpeedEstimator::kQuickRounds, 100 * factor, 0.02);

    EXPECT_EQ(estimator.observations(), SpeedEstimator::kQuickRounds);
    EXPECT_NEAR(estimator.SamplesPerSecond(), 100 * factor, 5 * factor);
  }
}

TEST(SpeedEstimatorTest, SeesAChangeByTwoThroughNoiseInEightRounds) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SpeedEstimator estimator;
    Rng rng(seed);
    ObserveRounds(estimator, rng, 50, 100, 0.1);

    ObserveRounds(estimator, rng, 8, 50, 0.1);

    ASSERT_LE(estimator.observations(), 8) << "seed " << seed;
    ASSERT_NEAR(estimator.SamplesPerSecond(), 50, 50 * 0.25) << "seed " << seed;
  }
}

TEST(SpeedEstimatorTest, FindsASmallLastingChange) {
  SpeedEstimator estimator;
  Rng rng(1);
  ObserveRounds(estimator, rng, 1000, 100, 0.1);

  ObserveRounds(estimator, rng, 200, 85, 0.1);

  EXPECT_LE(estimator.observations(), 250);
  EXPECT_NEAR(estimator.SamplesPerSecond(), 85, 85 * 0.04);
}

TEST(SpeedEstimatorTest, FollowsASlowDrift) {
  SpeedEstimator estimator;
  Rng rng(1);
  double speed = 100;

  for (int i = 0; i < 3000; ++i) {
    speed *= 0.9997;
    ObserveRounds(estimator, rng, 1, speed, 0.05);
  }

  EXPECT_NEAR(estimator.SamplesPerSecond(), speed, speed * 0.12);
}

TEST(SpeedEstimatorTest, AnOutlierCountsForLittle) {
  SpeedEstimator estimator;
  Rng rng(1);
  ObserveRounds(estimator, rng, 20, 100, 0.02);

  estimator.Observe(32, 32.0);  // 100 times as long

  EXPECT_EQ(estimator.observations(), 21);
  EXPECT_NEAR(estimator.SamplesPerSecond(), 100, 4);
}

TEST(SpeedEstimatorTest, ForgetsASlowFirstRound) {
  SpeedEstimator estimator;
  Rng rng(1);

  estimator.Observe(32, 10 * 0.32);
  ObserveRounds(estimator, rng, 4, 100, 0.02);

  EXPECT_EQ(estimator.observations(), 4);
  EXPECT_NEAR(estimator.SamplesPerSecond(), 100, 5);
}

TEST(SpeedEstimatorPropertyTest, NoiseOfTenPercentNeverCutsTheWindow) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SpeedEstimator estimator;
    Rng rng(seed);

    ObserveRounds(estimator, rng, 10'000, 100, 0.1);

    ASSERT_EQ(estimator.observations(), 10'000) << "seed " << seed;
  }
}

TEST(SpeedEstimatorOracleTest, IsTheMeanOfAllLogSpeedsWhileNothingIsClipped) {
  SpeedEstimator estimator;
  Rng rng(4);
  double sum = 0;

  for (int i = 1; i <= 1000; ++i) {
    const double seconds = 0.3 * (1 + 0.1 * (rng.Uniform() - 0.5));
    estimator.Observe(32, seconds);
    sum += std::log(32 / seconds);
    ASSERT_NEAR(std::log(estimator.SamplesPerSecond()), sum / i, 1e-9) << "round " << i;
  }
}

TEST(SpeedEstimatorTest, AFirstRoundOfManyStepsIsEnoughToGoBy) {
  SpeedEstimator speed;

  speed.Observe(3200, 8.0, 48);

  EXPECT_EQ(speed.observations(), 5);
  EXPECT_NEAR(speed.SamplesPerSecond(), 400, 1e-9);
  speed.Observe(3200, 8.0, 48);
  EXPECT_EQ(speed.observations(), 6);
}

}  // namespace
}  // namespace tactus::policies
