#include "policies/loss_trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

struct Course {
  double from = 10;  // [s]
  double to = 20;    // [s]
  int points = 40;
  double power = 0.5;
  double factor = 4;
  double noise = 0;
};

std::vector<LossAt> PowerLaw(const Course& course, Rng& rng) {
  std::vector<LossAt> points;
  for (int i = 0; i < course.points; ++i) {
    const double seconds = course.from + (course.to - course.from) * i / course.points;
    const double loss = course.factor * std::pow(seconds, -course.power);
    points.push_back({.seconds = seconds, .loss = loss * (1 + course.noise * rng.Normal())});
  }
  return points;
}

TEST(LossTrendTest, APowerLawIsFoundExactlyAndItsFloorTakenOff) {
  Rng rng(1);
  std::vector<LossAt> points = PowerLaw({.power = 0.7}, rng);
  for (LossAt& point : points) point.loss += 1.5;

  const LossTrend trend = FitLoss(points, 1.5);

  EXPECT_EQ(trend.points, 40);
  EXPECT_NEAR(trend.fall, 0.7, 1e-9);
  EXPECT_NEAR(trend.mean, std::log(4) - 0.7 * trend.center, 1e-9);
  EXPECT_LT(trend.fall_error, 1e-6);
}

TEST(LossTrendTest, PointsThatHaveNoLogarithmAreLeftOut) {
  const double bad = std::numeric_limits<double>::quiet_NaN();

  const LossTrend trend = FitLoss({{1, 0.5}, {2, 2}, {3, bad}, {0, 2}, {4, -1}, {5, 3}}, 0.5);

  EXPECT_EQ(trend.points, 2);
  EXPECT_TRUE(std::isinf(trend.fall_error));
}

TEST(LossTrendTest, ErrorsCoverTheTruthAsOftenAsNormalOnesDo) {
  int within_two = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);

    const LossTrend trend = FitLoss(PowerLaw({.noise = 0.05}, rng), 0);

    if (std::abs(trend.fall - 0.5) < 2 * trend.fall_error) ++within_two;
  }
  // 95 % of 1,000, within 4 of its standard deviations of 7, and the tails of 38 degrees of
  // freedom.
  EXPECT_GT(within_two, 915);
  EXPECT_LT(within_two, 985);
}

TEST(LossTrendTest, ALossThatGoesOnAsBeforeHardlyEverLags) {
  int lags = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const LossTrend before = FitLoss(PowerLaw({.from = 5, .to = 10, .noise = 0.05}, rng), 0);
    const LossTrend after = FitLoss(PowerLaw({.from = 10, .to = 20, .noise = 0.05}, rng), 0);

    if (Lags(before, after)) ++lags;
  }
  EXPECT_LE(lags, 1);
}

TEST(LossTrendTest, ALossThatStandsStillLags) {
  Rng rng(1);
  const LossTrend before = FitLoss(PowerLaw({.from = 5, .to = 10, .noise = 0.01}, rng), 0);
  const Course still{.power = 0, .factor = 4 * std::pow(10, -0.5), .noise = 0.01};

  EXPECT_TRUE(Lags(before, FitLoss(PowerLaw(still, rng), 0)));
}

TEST(LossTrendTest, ALossThatFellAtOnceAndThenStandsStillDoesNotLag) {
  Rng rng(1);
  const LossTrend before = FitLoss(PowerLaw({.from = 5, .to = 10, .noise = 0.01}, rng), 0);
  const Course low{.power = 0, .factor = 2 * std::pow(20, -0.5), .noise = 0.01};

  EXPECT_FALSE(Lags(before, FitLoss(PowerLaw(low, rng), 0)));
}

TEST(LossTrendTest, TooFewPointsNeverLag) {
  Rng rng(1);
  const LossTrend before = FitLoss(PowerLaw({.points = 3}, rng), 0);
  const LossTrend after = FitLoss(PowerLaw({.power = 0, .factor = 9}, rng), 0);

  EXPECT_FALSE(Lags(before, after));
  EXPECT_FALSE(Lags(after, before));
}

}  // namespace
}  // namespace tactus::policies
