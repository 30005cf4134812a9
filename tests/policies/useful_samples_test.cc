#include "policies/useful_samples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "policies/gradient_noise.h"

namespace tactus::policies {
namespace {

TEST(UsefulSamplesTest, TheBaseBatchIsWorthItselfUnderEveryRule) {
  for (const LearningRateRule rule : {LearningRateRule::kConstant, LearningRateRule::kLinear,
                                      LearningRateRule::kSqrt, LearningRateRule::kAdascale}) {
    EXPECT_NEAR(UsefulSamples(32, {.rule = rule, .base_batch = 32, .noise_scale = 500}), 32, 1e-9);
    EXPECT_NEAR(UsefulSamples(32, {.rule = rule, .base_batch = 32}), 32, 1e-9);
  }
}

TEST(UsefulSamplesTest, UnderAdascaleItIsTheBatchTimesItsEfficiency) {
  const double useful = UsefulSamples(
      256, {.rule = LearningRateRule::kAdascale, .base_batch = 32, .noise_scale = 96});

  EXPECT_NEAR(useful, 256 * (96.0 + 32) / (96 + 256), 1e-9);
  EXPECT_NEAR(useful,
              256 * StatisticalEfficiency({.batch = 256, .base_batch = 32, .noise_samples = 96}),
              1e-9);
}

TEST(UsefulSamplesTest, AtTheConstantRateNoBatchIsWorthTwoBaseBatches) {
  const BatchWorth noisy{.rule = LearningRateRule::kConstant, .base_batch = 32, .noise_scale = 1e6};

  EXPECT_NEAR(UsefulSamples(64, noisy), 32 * 1.5, 0.01);  // r = 2: 2 - 1/2
  EXPECT_LT(UsefulSamples(32'000, noisy), 64);
}

TEST(UsefulSamplesTest, LinearScalingIsWorthTheBatchInNoiseAndNothingWithoutIt) {
  const LearningRateRule linear = LearningRateRule::kLinear;

  EXPECT_NEAR(UsefulSamples(256, {.rule = linear, .base_batch = 32, .noise_scale = 1e9}), 256,
              0.01);
  EXPECT_NEAR(UsefulSamples(256, {.rule = linear, .base_batch = 32, .noise_scale = 0}),
              kWorthMin * 32, 1e-9);
}

TEST(UsefulSamplesTest, UnknownNoiseIsNoReasonForALargerBatch) {
  EXPECT_EQ(UsefulSamples(320, {.rule = LearningRateRule::kAdascale, .base_batch = 32}), 32);
  EXPECT_EQ(UsefulSamples(8, {.rule = LearningRateRule::kAdascale, .base_batch = 32}), 8);
}

TEST(UsefulSamplesPropertyTest, IsBoundedGrowsWithNoiseAndAdascaleIsTheBestRule) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double base = 1 + static_cast<double>(rng.Below(500));
    const double batch = base * (1 + 50 * rng.Uniform());
    const double noise = std::exp(15 * rng.Uniform() - 3);
    const auto worth = [&](LearningRateRule rule, double phi) {
      return UsefulSamples(batch, {.rule = rule, .base_batch = base, .noise_scale = phi});
    };

    const double best = worth(LearningRateRule::kAdascale, noise);
    for (const LearningRateRule rule : {LearningRateRule::kConstant, LearningRateRule::kLinear,
                                        LearningRateRule::kSqrt, LearningRateRule::kAdascale}) {
      const double useful = worth(rule, noise);
      ASSERT_GE(useful, kWorthMin * base * (1 - 1e-12)) << "seed " << seed;
      ASSERT_LE(useful, batch * (1 + 1e-12)) << "seed " << seed;
      ASSERT_LE(useful, best * (1 + 1e-12)) << "seed " << seed;
      ASSERT_GE(worth(rule, 2 * noise), useful * (1 - 1e-12)) << "seed " << seed;
    }
  }
}

// A step of adam that is longer than the best one is no divergence.
TEST(UsefulSamplesTest, UnderTheRootARateAboveTheBestTeachesWhatTheBestWould) {
  for (const double noise : {1e-3, 1.0, 30.0, 1000.0}) {
    const auto worth = [noise](LearningRateRule rule) {
      return UsefulSamples(128, {.rule = rule, .base_batch = 32, .noise_scale = noise});
    };
    const double best = worth(LearningRateRule::kAdascale);
    const double gain = best / 32;
    const double root = gain < 2 ? best : 32 * (2 * 2.0 - 2.0 * 2.0 / gain);
    EXPECT_NEAR(worth(LearningRateRule::kSqrt), root, 1e-9) << noise;
    EXPECT_GE(worth(LearningRateRule::kSqrt), worth(LearningRateRule::kConstant) * (1 - 1e-12));
  }
}

}  // namespace
}  // namespace tactus::policies
