#include "simulator/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "simulator/elementary.h"

namespace tactus::simulator {
namespace {

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

double MeanBatchSeconds(Device& device, int batches, double apart_seconds) {
  double sum = 0;
  for (int i = 0; i < batches; ++i) sum += ToSeconds(device.BatchTime(10, At(i * apart_seconds)));
  return sum / batches;
}

TEST(DeviceTest, ABatchCostsAFixedTimeAndATimeASample) {
  Device device({.batch_seconds = 0.5, .sample_seconds = 0.25}, Rng(1));

  EXPECT_EQ(device.BatchTime(4, At(0)), Seconds(1.5));
}

TEST(DeviceTest, DriftGrowsWithTheHours) {
  Device device({.sample_seconds = 0.1, .drift_per_hour = 0.5}, Rng(1));

  EXPECT_EQ(device.BatchTime(10, At(0)), Seconds(1));
  EXPECT_EQ(device.BatchTime(10, At(7200)), Seconds(2));
}

TEST(DeviceTest, ASlowDownEnds) {
  Device device({.sample_seconds = 0.1}, Rng(1));

  device.SlowDown(3, At(10));

  EXPECT_EQ(device.BatchTime(10, At(9)), Seconds(3));
  EXPECT_EQ(device.BatchTime(10, At(10)), Seconds(1));
}

// 20,000 draws of variance exp(0.09) - 1 = 0.094: the mean is good to 0.31 / sqrt(20,000) = 0.22 %;
// the bound is four of that.
TEST(DeviceTest, NoiseLeavesTheMeanWhereItIs) {
  Device device({.sample_seconds = 0.1, .noise = {.log_sigma = 0.3}}, Rng(1));

  EXPECT_NEAR(MeanBatchSeconds(device, 20'000, 1), 1, 4 * 0.0022);
}

// Slow for a third of the time: (20 + 3 * 10) / 30 = 1.667 on average. Some 667 cycles of stays
// whose share of slowness has a relative deviation of about sqrt(2 / 667) * 2 / 3 = 3.7 %, of which
// 40 % reach the mean; the bound is four of that.
TEST(DeviceTest, SlowPhasesTakeTheirShareOfTheTime) {
  const NoiseModel noise{.slow_factor = 3, .slow_seconds = 10, .fast_seconds = 20};
  Device device({.sample_seconds = 0.1, .noise = noise}, Rng(5));

  EXPECT_NEAR(MeanBatchSeconds(device, 20'000, 1), 5.0 / 3, 4 * 0.015 * 5 / 3);
}

// Slow for a third of the time in the end, and forgotten with exp(-t (1 / 10 + 1 / 20)): after 5 s
// a share of exp(-0.75) = 0.472 still is what it was. The worst share's deviation over 10,000
// devices is sqrt(0.25 / 10,000); the bound is four of that.
TEST(DeviceTest, APhaseIsForgottenExponentially) {
  constexpr int kDevices = 10'000;
  const NoiseModel noise{.slow_factor = 3, .slow_seconds = 10, .fast_seconds = 20};
  int slow = 0;
  int slow_after_slow = 0;
  int slow_once = 0;
  for (std::uint64_t seed = 1; seed <= kDevices; ++seed) {
    Device device({.sample_seconds = 0.1, .noise = noise}, Rng(seed));
    slow += device.BatchTime(10, At(5)) == Seconds(3) ? 1 : 0;
    if (device.BatchTime(10, At(1000)) == Seconds(1)) continue;
    ++slow_once;
    slow_after_slow += device.BatchTime(10, At(1005)) == Seconds(3) ? 1 : 0;
  }

  const double remembered = std::exp(-0.75);
  EXPECT_NEAR(1.0 * slow / kDevices, (1 - remembered) / 3, 4 * 0.005);
  EXPECT_NEAR(1.0 * slow_once / kDevices, 1 / 3.0, 4 * 0.005);
  EXPECT_NEAR(1.0 * slow_after_slow / slow_once, 1 / 3.0 + remembered * 2 / 3,
              4 * 0.005 * std::sqrt(3));
}

// Three thousand years of phases of a millisecond: the time of a batch does not depend on how many
// phases have passed. 1000 draws of a half: the bound is four deviations.
TEST(DeviceTest, TheShortestPhasesCostNoTime) {
  const NoiseModel noise{
      .slow_factor = 3, .slow_seconds = kPhaseSecondsMin, .fast_seconds = kPhaseSecondsMin};
  Device device({.sample_seconds = 0.1, .noise = noise}, Rng(1));

  EXPECT_NEAR(MeanBatchSeconds(device, 1000, 3e6), 2, 4 * std::sqrt(1 / 1000.0));
}

TEST(DeviceTest, ABatchTakesNoLongerThanItsMaximum) {
  const NoiseModel noise{
      .log_sigma = 2, .slow_factor = 1e6, .slow_seconds = 1, .fast_seconds = kPhaseSecondsMin};
  Device device({.sample_seconds = 3600, .noise = noise, .drift_per_hour = 100}, Rng(1));
  device.SlowDown(1e6, At(1e9));

  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(device.BatchTime(1 << 20, At(1e6 * i)), Device::kBatchTimeMax);
  }
}

// A batch of 1e6 s has 50 bits in nanoseconds: a last bit that depends on libm would be seen.
TEST(DeviceTest, NoiseHasTheSameBitsOnEveryMachine) {
  const double s = 0.3;
  Device device({.sample_seconds = 1e6, .noise = {.log_sigma = s}}, Rng(1));
  Rng normals = Rng(1).Fork("noise");

  for (int i = 0; i < 1000; ++i) {
    const double factor = Exponential(s * normals.Normal() - s * s / 2);
    EXPECT_EQ(device.BatchTime(1, At(i)), Seconds(1e6 * factor));
  }
}

TEST(DeviceTest, EqualSeedsGiveEqualNoise) {
  const DeviceModel model{.sample_seconds = 0.1, .noise = {.log_sigma = 0.3}};
  Device first(model, Rng(7));
  Device second(model, Rng(7));
  Device other(model, Rng(8));

  const Duration time = first.BatchTime(10, At(0));
  EXPECT_EQ(second.BatchTime(10, At(0)), time);
  EXPECT_NE(other.BatchTime(10, At(0)), time);
}

}  // namespace
}  // namespace tactus::simulator
