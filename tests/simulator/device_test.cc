#include "simulator/device.h"

#include <gtest/gtest.h>

#include <cmath>

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
  EXPECT_DOUBLE_EQ(device.Speed(4), 4 / 1.5);
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
  EXPECT_NEAR(device.Speed(10), 10 / (5.0 / 3), 1e-12);
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
