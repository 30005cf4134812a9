#include "simulator/power_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

constexpr double kSamples = 100000;  // the last point of Recording

// A hundred points on the law, with noise of the given standard deviation.
std::vector<LossPoint> Recording(const PowerLaw& law, double noise = 0, std::uint64_t seed = 1) {
  std::vector<LossPoint> points;
  Rng rng(seed);
  for (int i = 1; i <= 100; ++i) {
    const double samples = kSamples * i / 100;
    points.push_back({.samples = samples, .loss = law.At(samples) + noise * rng.Normal()});
  }
  return points;
}

TEST(PowerLawTest, IsItsFormula) {
  const PowerLaw law{.floor = 1, .scale = 3, .reference = 100, .exponent = 0.5};

  EXPECT_DOUBLE_EQ(law.At(100), 4);
  EXPECT_DOUBLE_EQ(law.At(400), 2.5);
  EXPECT_DOUBLE_EQ(law.At(25), 7);
}

TEST(FitPowerLawTest, FindsTheLawThatThePointsLieOn) {
  for (const double floor : {0.0, 0.3, 2.0}) {
    for (const double exponent : {0.05, 0.3, 0.5, 1.0, 3.0}) {
      SCOPED_TRACE(testing::Message() << floor << " + n^-" << exponent);
      const PowerLaw truth{
          .floor = floor, .scale = 0.4, .reference = kSamples, .exponent = exponent};

      const PowerLaw law = FitPowerLaw(Recording(truth));

      EXPECT_NEAR(law.exponent, exponent, 1e-4 * exponent);
      EXPECT_NEAR(law.residual, 0, 1e-9 * truth.At(kSamples / 100));
      EXPECT_NEAR(law.At(4 * kSamples), truth.At(4 * kSamples), 1e-4);
      EXPECT_NEAR(law.At(4 * kSamples) / truth.At(4 * kSamples), 1, 0.01);
    }
  }
}

// Variance of the fitted law at `samples`, in units of that of a point: with the derivatives J
// of the law by its parameters at the points and j at `samples`, j' (J'J)^-1 j. To first order.
double VarianceAt(const PowerLaw& law, const std::vector<LossPoint>& points, double samples) {
  using Row = std::array<double, 3>;
  const auto derivatives = [&](double n) {
    const double power = std::pow(n / law.reference, -law.exponent);
    return Row{1, power, -law.scale * power * std::log(n / law.reference)};
  };
  std::array<std::array<double, 4>, 3> system{};  // J'J and j
  for (const LossPoint& point : points) {
    const Row row = derivatives(point.samples);
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 3; ++k) system[i][k] += row[i] * row[k];
    }
  }
  const Row target = derivatives(samples);
  for (int i = 0; i < 3; ++i) system[i][3] = target[i];
  for (int pivot = 0; pivot < 3; ++pivot) {
    for (int i = 0; i < 3; ++i) {
      if (i == pivot) continue;
      const double factor = system[i][pivot] / system[pivot][pivot];
      for (int k = 0; k < 4; ++k) system[i][k] -= factor * system[pivot][k];
    }
  }
  double variance = 0;
  for (int i = 0; i < 3; ++i) variance += target[i] * system[i][3] / system[i][i];
  return variance;
}

TEST(FitPowerLawTest, NoiseMovesThePredictionAsFarAsLeastSquaresAllows) {
  constexpr double kNoise = 0.01;
  const PowerLaw truth{.floor = 0.5, .scale = 0.3, .reference = kSamples, .exponent = 0.7};
  const double deviation = kNoise * std::sqrt(VarianceAt(truth, Recording(truth), 4 * kSamples));
  double squares = 0;

  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const PowerLaw law = FitPowerLaw(Recording(truth, kNoise, seed));
    const double error = law.At(4 * kSamples) - truth.At(4 * kSamples);
    EXPECT_NEAR(error, 0, 4.5 * deviation) << seed;
    squares += error * error / 100;
    // Of 100 - 3 free normals; the deviation of a mean of 100 squares is sqrt(2 / 100).
    EXPECT_NEAR(law.residual * law.residual, 0.97 * kNoise * kNoise, 5 * 0.14 * kNoise * kNoise);
  }

  EXPECT_LT(squares, 2 * deviation * deviation);
  EXPECT_LT(4.5 * deviation, 0.05 * truth.At(4 * kSamples));  // the bounds mean something
}

TEST(FitPowerLawTest, FloorStaysAtZeroOrAboveUnlessLossesAreNegative) {
  // Straight down to 0: the unconstrained law would end far below it.
  std::vector<LossPoint> points;
  for (int i = 1; i <= 20; ++i) points.push_back({.samples = 1.0 * i, .loss = 1 - i / 20.0});

  const PowerLaw law = FitPowerLaw(points);
  for (LossPoint& point : points) point.loss -= 2;
  const PowerLaw below = FitPowerLaw(points);

  EXPECT_EQ(law.floor, 0);
  EXPECT_GT(law.At(1000), 0);
  EXPECT_LT(below.floor, -2);
}

TEST(FitPowerLawTest, PointsThatDoNotFallGiveTheirMean) {
  const PowerLaw constant =
      FitPowerLaw(std::vector<LossPoint>{{1, 0.7}, {2, 0.7}, {3, 0.7}, {4, 0.7}, {5, 0.7}});
  const PowerLaw rising =
      FitPowerLaw(std::vector<LossPoint>{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}});

  EXPECT_DOUBLE_EQ(constant.At(100), 0.7);
  EXPECT_NEAR(constant.residual, 0, 1e-15);
  EXPECT_DOUBLE_EQ(rising.At(100), 3);
  EXPECT_DOUBLE_EQ(rising.residual, std::sqrt(2));
}

TEST(FitPowerLawTest, IsDefinedForAnyPoints) {
  const std::vector<std::vector<LossPoint>> degenerate = {
      {},
      {{0, 3}},
      {{5, 3}},
      {{5, 3}, {5, 1}, {5, 2}, {5, 2}},  // all at the same number of samples
      {{0, 3}, {0, 2}, {0, 2}, {0, 1}},
      {{1, 1e30}, {2, 1e-30}, {1e18, 0}, {1e18, 0}, {1e18, 0}},
  };
  for (const auto& points : degenerate) {
    const PowerLaw law = FitPowerLaw(points);
    EXPECT_TRUE(std::isfinite(law.At(1e9))) << points.size();
    EXPECT_TRUE(std::isfinite(law.residual)) << points.size();
    EXPECT_GE(law.scale, 0) << points.size();
  }
  EXPECT_EQ(FitPowerLaw(degenerate[0]).At(1), 0);
  EXPECT_EQ(FitPowerLaw(degenerate[2]).At(1), 3);
}

TEST(FitPowerLawTest, TheOrderOfThePointsDoesNotMatterBeyondRounding) {
  const PowerLaw truth{.floor = 1, .scale = 1, .reference = kSamples, .exponent = 0.4};
  std::vector<LossPoint> points = Recording(truth, 0.02);
  const PowerLaw law = FitPowerLaw(points);
  EXPECT_EQ(FitPowerLaw(points).exponent, law.exponent);

  std::ranges::reverse(points);

  EXPECT_NEAR(FitPowerLaw(points).At(4 * kSamples), law.At(4 * kSamples), 1e-6);
}

}  // namespace
}  // namespace tactus::simulator
