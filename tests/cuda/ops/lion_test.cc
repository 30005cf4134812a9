#include "cuda/ops/lion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

// The formula of the header for one element, in float64.
struct Naive {
  double direction = 0;  // c
  double parameter = 0;
  double momentum = 0;
};

Naive NaiveLion(const LionStep& step, double gradient, double parameter, double momentum) {
  const double g = static_cast<double>(step.gradient_scale) * gradient;
  const double c = step.beta1 * momentum + (1 - step.beta1) * g;
  const double sign = c > 0 ? 1 : (c < 0 ? -1 : 0);
  return {.direction = c,
          .parameter = parameter - step.learning_rate * (sign + step.weight_decay * parameter),
          .momentum = step.beta2 * momentum + (1 - step.beta2) * g};
}

class LionLengthTest : public testing::TestWithParam<std::size_t> {};

TEST_P(LionLengthTest, AgreesWithItsFormulaInFloat64) {
  const std::size_t length = GetParam();
  const LionStep step{.learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 1.0f / 7};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length, 10);
  Guarded parameters = RandomBuffer(rng, length);
  Guarded momentum = RandomBuffer(rng, length);
  const Guarded parameters_before = parameters;
  const Guarded momentum_before = momentum;

  host::Lion(step, gradients.span(), parameters.span(), momentum.span());

  // Every term of a sum took so many roundings, of 2^-24 of it each: c and m 6; p 4.
  constexpr double kRounding = 0x1p-24;
  for (std::size_t i = 0; i < length; ++i) {
    const double before = parameters_before.span()[i];
    const double kept = momentum_before.span()[i];
    const double gradient = gradients.span()[i];
    const Naive expected = NaiveLion(step, gradient, before, kept);
    const double terms = std::abs(kept) + std::abs(gradient) / 7;
    ASSERT_NEAR(momentum[i], expected.momentum, 6 * kRounding * terms) << i;
    // Where c is within its rounding of zero, either sign is right.
    if (std::abs(expected.direction) <= 6 * kRounding * terms) continue;
    ASSERT_NEAR(parameters[i], expected.parameter,
                4 * kRounding * (std::abs(before) + step.learning_rate))
        << i;
  }
  EXPECT_TRUE(gradients.Intact() && parameters.Intact() && momentum.Intact());
}

TEST_P(LionLengthTest, EveryElementIsComputedAlikeWhereverItStands) {
  const std::size_t length = GetParam();
  const LionStep step{.learning_rate = 0.01, .weight_decay = 0.1};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length);
  Guarded parameters = RandomBuffer(rng, length);
  Guarded momentum = RandomBuffer(rng, length);
  Guarded one_by_one = parameters;
  Guarded momentum_one_by_one = momentum;

  host::Lion(step, gradients.span(), parameters.span(), momentum.span());
  for (std::size_t i = 0; i < length; ++i) {
    host::Lion(step, gradients.span().subspan(i, 1), one_by_one.span().subspan(i, 1),
               momentum_one_by_one.span().subspan(i, 1));
  }

  for (std::size_t i = 0; i < length; ++i) {
    ASSERT_EQ(UlpsBetween(parameters[i], one_by_one[i]), 0) << i;
    ASSERT_EQ(UlpsBetween(momentum[i], momentum_one_by_one[i]), 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, LionLengthTest, testing::ValuesIn(kLengths));

// By hand, in numbers that binary has: beta1 = 1/2, beta2 = 3/4, rate 1/8, decay 1/2.
TEST(LionTest, TwoStepsByHand) {
  const LionStep step{.learning_rate = 0.125, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.5};
  std::vector<float> parameters = {1, -2, 4};
  std::vector<float> momentum = {0, 0, 0};

  host::Lion(step, std::vector<float>{4, -8, 0}, parameters, momentum);

  // p 15/16 -+ 1/8, and the decay alone where c = 0; m = g / 4.
  EXPECT_EQ(parameters, (std::vector<float>{0.8125f, -1.75f, 3.75f}));
  EXPECT_EQ(momentum, (std::vector<float>{1, -2, 0}));

  host::Lion(step, std::vector<float>{-3, 2, 1}, parameters, momentum);

  // c = -1, 0, 1/2; m = 3/4 m + g / 4.
  EXPECT_EQ(parameters, (std::vector<float>{0.88671875f, -1.640625f, 3.390625f}));
  EXPECT_EQ(momentum, (std::vector<float>{0, -1, 0.25f}));
}

TEST(LionTest, ANonFiniteGradientSpoilsItsOwnElementAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> parameters = {1, 1, 1};
  std::vector<float> momentum = {0, 0, 0};

  host::Lion({.learning_rate = 0.5}, std::vector<float>{1, nan, 1}, parameters, momentum);

  EXPECT_EQ(parameters[0], 0.5f);
  EXPECT_TRUE(std::isnan(parameters[1]) && std::isnan(momentum[1]));
  EXPECT_EQ(parameters[2], 0.5f);
}

TEST(LionTest, AShutGateChangesNothing) {
  const double shut[kGateLength] = {};
  std::vector<float> parameters = {1};
  std::vector<float> momentum = {2};

  host::Lion({.learning_rate = 0.5, .gate = shut}, std::vector<float>{1}, parameters, momentum);

  EXPECT_EQ(parameters[0], 1);
  EXPECT_EQ(momentum[0], 2);
}

TEST(LionDeathTest, RefusesWhatItsContractExcludes) {
  std::vector<float> four(4);
  std::vector<float> three(3);

  EXPECT_DEATH(host::Lion({}, three, four, four), "check failed");
  EXPECT_DEATH(host::Lion({}, four, four, three), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
