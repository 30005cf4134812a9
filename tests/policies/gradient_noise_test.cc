#include "policies/gradient_noise.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace tactus::policies {
namespace {

constexpr std::size_t kDimension = 100;

// Facts of one update whose samples' gradients have the mean (signal, 0, 0, ...) and the variance
// 1 in each of kDimension coordinates: phi = kDimension / signal^2.
UpdateFacts NoisyUpdate(Rng& rng, double signal) {
  const std::array<double, 3> sizes = {8, 16, 40};
  std::array<double, kDimension> mean{};
  UpdateFacts facts{.samples = 64, .contributors = 3};
  for (const double samples : sizes) {
    for (std::size_t i = 0; i < kDimension; ++i) {
      const double value = (i == 0 ? signal : 0) + rng.Normal() / std::sqrt(samples);
      facts.samples_gradient_norm2 += samples * value * value;
      mean[i] += samples / 64 * value;
    }
  }
  for (const double value : mean) facts.gradient_norm2 += value * value;
  return facts;
}

TEST(GradientNoiseTest, IsUnknownAtFirst) {
  GradientNoise noise;
  Rng rng(1);
  for (std::uint64_t i = 0; i < GradientNoise::kUpdatesMin; ++i) {
    EXPECT_FALSE(noise.Samples().has_value());
    noise.Observe(NoisyUpdate(rng, 1));
  }
  EXPECT_TRUE(noise.Samples().has_value());
}

TEST(GradientNoiseTest, FindsTheNoiseScaleOfUnequalBatches) {
  for (const double expected : {10.0, 100.0, 1000.0}) {
    GradientNoise noise;
    Rng rng(1);
    for (int i = 0; i < 1000; ++i) noise.Observe(NoisyUpdate(rng, std::sqrt(100 / expected)));

    EXPECT_NEAR(*noise.Samples(), expected, 0.25 * expected);
  }
}

TEST(GradientNoiseTest, FollowsAChangeOfTheNoiseScale) {
  GradientNoise noise;
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) noise.Observe(NoisyUpdate(rng, std::sqrt(10)));

  for (int i = 0; i < 300; ++i) noise.Observe(NoisyUpdate(rng, 1));

  EXPECT_NEAR(*noise.Samples(), 100, 25);
}

TEST(GradientNoiseTest, NoiseThatHidesTheMeanGivesTheLargestScale) {
  GradientNoise noise;

  // Gradients that cancel: mu2 is estimated below 0.
  for (int i = 0; i < 20; ++i) {
    noise.Observe({.samples = 64, .contributors = 2, .samples_gradient_norm2 = 64});
  }

  EXPECT_EQ(*noise.Samples(), GradientNoise::kSamplesMax);
}

TEST(GradientNoiseTest, EqualGradientsHaveNoNoiseAndZeroGradientsNoScale) {
  GradientNoise equal;
  GradientNoise zero;

  for (int i = 0; i < 20; ++i) {
    equal.Observe(
        {.samples = 64, .contributors = 2, .samples_gradient_norm2 = 128, .gradient_norm2 = 2});
    zero.Observe({.samples = 64, .contributors = 2});
  }

  EXPECT_EQ(*equal.Samples(), 0);
  EXPECT_FALSE(zero.Samples().has_value());
}

TEST(GradientNoiseTest, FactsWithoutAnEstimateChangeNothing) {
  GradientNoise noise;
  Rng rng(1);
  noise.Observe(NoisyUpdate(rng, 1));
  const MomentAverage::State before = noise.state();

  noise.Observe(
      {.samples = 64, .contributors = 1, .samples_gradient_norm2 = 64, .gradient_norm2 = 1});
  noise.Observe({.samples = 64,
                 .contributors = 3,
                 .samples_gradient_norm2 = std::numeric_limits<double>::quiet_NaN()});

  EXPECT_EQ(noise.state(), before);
}

TEST(GradientNoiseTest, GoesOnFromAState) {
  GradientNoise whole;
  Rng rng(1);
  for (int i = 0; i < 15; ++i) whole.Observe(NoisyUpdate(rng, 1));
  GradientNoise restored;

  restored.Restore(whole.state());

  EXPECT_EQ(restored.Samples(), whole.Samples());
}

TEST(StatisticalEfficiencyTest, IsOneForTheBaseBatchAndFallsWithTheBatch) {
  EXPECT_EQ(StatisticalEfficiency({.batch = 32, .base_batch = 32, .noise_samples = 100}), 1);
  EXPECT_DOUBLE_EQ(StatisticalEfficiency({.batch = 164, .base_batch = 32, .noise_samples = 100}),
                   0.5);
  EXPECT_DOUBLE_EQ(StatisticalEfficiency({.batch = 64, .base_batch = 32}), 0.5);
}

TEST(StatisticalEfficiencyPropertyTest, TimesTheScaleIsTheGainOfAdascale) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const GradientMoments moments{.sigma2 = 0.01 + rng.Uniform(), .mu2 = 0.01 + rng.Uniform()};
    const double base_batch = static_cast<double>(1 + rng.Below(256));
    const double scale = 1 + 63 * rng.Uniform();
    const double efficiency =
        StatisticalEfficiency({.batch = scale * base_batch,
                               .base_batch = base_batch,
                               .noise_samples = base_batch * moments.sigma2 / moments.mu2});

    ASSERT_NEAR(scale * efficiency, Gain(moments, scale), 1e-9 * scale) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
