#include "cuda/ops/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

struct State {
  double parameter = 0;
  double first = 0;
  double second = 0;
  double rate_over_root = 0;  // what the first moment was multiplied by
};

// The formula of the header for one element, in float64.
State NaiveAdam(const AdamStep& step, double gradient, const State& state) {
  const double t = static_cast<double>(step.step);
  double parameter = state.parameter;
  double g = static_cast<double>(step.gradient_scale) * gradient;
  if (step.decoupled) {
    parameter *= 1 - step.learning_rate * step.weight_decay;
  } else {
    g += step.weight_decay * parameter;
  }
  const double first = step.beta1 * state.first + (1 - step.beta1) * g;
  const double second = step.beta2 * state.second + (1 - step.beta2) * g * g;
  const double root = std::sqrt(second) / std::sqrt(1 - std::pow(step.beta2, t)) +
                      static_cast<double>(step.epsilon);
  const double rate = step.learning_rate / (1 - std::pow(step.beta1, t));
  return {.parameter = parameter - rate * first / root,
          .first = first,
          .second = second,
          .rate_over_root = rate / root};
}

struct Variant {
  double weight_decay;
  bool decoupled;
  std::uint64_t step;
};

class AdamTwinTest : public testing::TestWithParam<std::tuple<std::size_t, Variant>> {};

TEST_P(AdamTwinTest, AgreesWithItsFormulaInFloat64) {
  const auto [length, variant] = GetParam();
  const AdamStep step{.learning_rate = 0.01,
                      .weight_decay = variant.weight_decay,
                      .decoupled = variant.decoupled,
                      .gradient_scale = 1.0f / 7,
                      .step = variant.step};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length, 10);
  Guarded parameters = RandomBuffer(rng, length);
  Guarded first = RandomBuffer(rng, length, 0.1f);
  Guarded second = RandomBuffer(rng, length, 0.1f);
  for (float& value : second.span()) value *= value;
  const Guarded parameters_before = parameters;
  const Guarded first_before = first;
  const Guarded second_before = second;

  host::Adam(step, gradients.span(), parameters.span(), first.span(), second.span());

  // Every term of a sum took so many roundings, of 2^-24 of it each: g 3, m 3 more, v 4 more; p 3,
  // and the quotient 8 more than m, half of v's included.
  constexpr double kRounding = 0x1p-24;
  for (std::size_t i = 0; i < length; ++i) {
    const State before{.parameter = parameters_before.span()[i],
                       .first = first_before.span()[i],
                       .second = second_before.span()[i]};
    const double gradient = gradients.span()[i];
    const State expected = NaiveAdam(step, gradient, before);
    const double g = std::abs(gradient) / 7 + variant.weight_decay * std::abs(before.parameter);
    const double first_terms = std::abs(before.first) + g;
    const double parameter_terms =
        3 * std::abs(before.parameter) + 14 * expected.rate_over_root * first_terms;
    ASSERT_NEAR(first[i], expected.first, 6 * kRounding * first_terms) << i;
    ASSERT_NEAR(second[i], expected.second, 10 * kRounding * (before.second + g * g)) << i;
    ASSERT_NEAR(parameters[i], expected.parameter, kRounding * parameter_terms) << i;
  }
  EXPECT_TRUE(gradients.Intact() && parameters.Intact() && first.Intact() && second.Intact());
}

INSTANTIATE_TEST_SUITE_P(
    LengthsAndVariants, AdamTwinTest,
    testing::Combine(testing::ValuesIn(kLengths),
                     testing::Values(Variant{0, false, 1}, Variant{0.1, false, 3},
                                     Variant{0.1, true, 3}, Variant{0, true, 1'000'000})));

class AdamLengthTest : public testing::TestWithParam<std::size_t> {};

TEST_P(AdamLengthTest, EveryElementIsComputedAlikeWhereverItStands) {
  const std::size_t length = GetParam();
  const AdamStep step{.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true, .step = 5};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length);
  Guarded parameters = RandomBuffer(rng, length);
  Guarded first = RandomBuffer(rng, length);
  Guarded second(length);
  for (float& value : second.span()) value = static_cast<float>(rng.Uniform());
  Guarded one_by_one = parameters;
  Guarded first_one_by_one = first;
  Guarded second_one_by_one = second;

  host::Adam(step, gradients.span(), parameters.span(), first.span(), second.span());
  for (std::size_t i = 0; i < length; ++i) {
    host::Adam(step, gradients.span().subspan(i, 1), one_by_one.span().subspan(i, 1),
               first_one_by_one.span().subspan(i, 1), second_one_by_one.span().subspan(i, 1));
  }

  for (std::size_t i = 0; i < length; ++i) {
    ASSERT_EQ(UlpsBetween(parameters[i], one_by_one[i]), 0) << i;
    ASSERT_EQ(UlpsBetween(first[i], first_one_by_one[i]), 0) << i;
    ASSERT_EQ(UlpsBetween(second[i], second_one_by_one[i]), 0) << i;
  }
}

TEST_P(AdamLengthTest, ANonFiniteGradientSpoilsItsOwnParameterAlone) {
  const std::size_t length = GetParam();
  if (length == 0) return;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Guarded gradients(length);
    Guarded parameters(length);
    Guarded first(length);
    Guarded second(length);
    gradients[length / 2] = bad;

    host::Adam({.learning_rate = 0.1}, gradients.span(), parameters.span(), first.span(),
               second.span());

    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(std::isnan(parameters[i]), i == length / 2) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, AdamLengthTest, testing::ValuesIn(kLengths));

TEST(AdamTest, TheFirstStepIsTheRateWhateverTheGradientsSize) {
  const float gradients[] = {1e-3f, -1.0f, 1e3f};
  float parameters[] = {0, 0, 0};
  float first[] = {0, 0, 0};
  float second[] = {0, 0, 0};

  host::Adam({.learning_rate = 0.1}, gradients, parameters, first, second);

  EXPECT_NEAR(parameters[0], -0.1f, 2e-6f);  // epsilon / 1e-3 = 1e-5 of it
  EXPECT_NEAR(parameters[1], 0.1f, 1e-7f);
  EXPECT_NEAR(parameters[2], -0.1f, 1e-7f);
}

TEST(AdamTest, AGradientOfZeroLeavesNewParametersAlone) {
  const float gradients[] = {0};
  float parameters[] = {0.5f};
  float first[] = {0};
  float second[] = {0};

  host::Adam({.learning_rate = 0.1}, gradients, parameters, first, second);

  EXPECT_EQ(parameters[0], 0.5f);
}

TEST(AdamTest, DecoupledDecayDoesNotTouchTheMoments) {
  const float gradients[] = {0};
  float parameters[] = {0.5f};
  float first[] = {0};
  float second[] = {0};

  host::Adam({.learning_rate = 0.1, .weight_decay = 0.5, .decoupled = true}, gradients, parameters,
             first, second);

  EXPECT_FLOAT_EQ(parameters[0], 0.475f);
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(second[0], 0);
}

TEST(AdamDeathTest, RefusesWhatItsContractExcludes) {
  std::vector<float> four(4);
  std::vector<float> three(3);

  EXPECT_DEATH(host::Adam({}, three, four, four, four), "check failed");
  EXPECT_DEATH(host::Adam({}, four, four, three, four), "check failed");
  EXPECT_DEATH(host::Adam({}, four, four, four, three), "check failed");
  EXPECT_DEATH(host::Adam({.step = 0}, four, four, four, four), "check failed");
}

// Whatever the gradient's square is.
TEST(FrozenAdamTest, TheSecondMomentStaysToTheBit) {
  const float gradients[] = {1e30f, -3, 0};
  float parameters[] = {1, 1, 1};
  float first[] = {0, 0, 0};
  float second[] = {0.25f, 1e-12f, 4};
  const AdamStep step{
      .learning_rate = 0.1, .epsilon = 1e-12f, .step = 1, .frozen = true, .second_step = 700};

  host::Adam(step, gradients, parameters, first, second);

  EXPECT_EQ(second[0], 0.25f);
  EXPECT_EQ(second[1], 1e-12f);
  EXPECT_EQ(second[2], 4);
  const double root = 1e-6 / std::sqrt(1 - std::pow(0.999, 700));
  EXPECT_NEAR(parameters[1], 1 + 0.1 * 3 / root, 1e-5 * 0.3 / root);
  EXPECT_EQ(parameters[2], 1);
}

}  // namespace
}  // namespace tactus::cuda
