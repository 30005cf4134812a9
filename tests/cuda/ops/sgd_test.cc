#include "cuda/ops/sgd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// The formula of the header for one element.
void NaiveSgd(const SgdStep& step, float gradient, float& parameter, float& momentum_buffer) {
  const float scaled = step.gradient_scale * gradient;
  const float decay = step.weight_decay * parameter;
  const float g = scaled + decay;
  const float kept = step.momentum * momentum_buffer;
  momentum_buffer = kept + g;
  const float ahead = step.momentum * momentum_buffer;
  const float direction = step.nesterov ? g + ahead : momentum_buffer;
  const float change = step.learning_rate * direction;
  parameter -= change;
}

struct Variant {
  float momentum;
  float weight_decay;
  bool nesterov;
};

class SgdTwinTest : public testing::TestWithParam<std::tuple<std::size_t, Variant>> {};

TEST_P(SgdTwinTest, IsBitIdenticalToItsFormulaOverThreeSteps) {
  const auto [length, variant] = GetParam();
  const SgdStep step{.learning_rate = 0.03f,
                     .momentum = variant.momentum,
                     .weight_decay = variant.weight_decay,
                     .gradient_scale = 1.0f / 7,
                     .nesterov = variant.nesterov};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length, 10);
  const Guarded gradients_before = gradients;
  Guarded parameters = RandomBuffer(rng, length);
  Guarded momentum_buffer(length);
  Guarded expected = parameters;
  Guarded expected_momentum = momentum_buffer;

  for (int t = 0; t < 3; ++t) {
    host::Sgd(step, gradients.span(), parameters.span(), momentum_buffer.span());
    for (std::size_t i = 0; i < length; ++i) {
      NaiveSgd(step, gradients.span()[i], expected[i], expected_momentum[i]);
    }
  }

  for (std::size_t i = 0; i < length; ++i) {
    ASSERT_EQ(Bits(parameters[i]), Bits(expected[i])) << i;
    ASSERT_EQ(Bits(momentum_buffer[i]), Bits(expected_momentum[i])) << i;
    ASSERT_EQ(Bits(gradients.span()[i]), Bits(gradients_before.span()[i])) << i;
  }
  EXPECT_TRUE(gradients.Intact() && parameters.Intact() && momentum_buffer.Intact());
}

INSTANTIATE_TEST_SUITE_P(
    LengthsAndVariants, SgdTwinTest,
    testing::Combine(testing::ValuesIn(kLengths),
                     testing::Values(Variant{0, 0, false}, Variant{0, 0.01f, false},
                                     Variant{0.9f, 0, false}, Variant{0.9f, 0.01f, false},
                                     Variant{0.9f, 0.01f, true})));

class SgdLengthTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SgdLengthTest, WithoutMomentumNeedsNoBufferAndGivesTheSameParameters) {
  const std::size_t length = GetParam();
  const SgdStep step{.learning_rate = 0.03f, .weight_decay = 0.01f, .gradient_scale = 0.5f};
  Rng rng(length);
  const Guarded gradients = RandomBuffer(rng, length);
  Guarded with_buffer = RandomBuffer(rng, length);
  Guarded without_buffer = with_buffer;
  Guarded momentum_buffer(length);

  host::Sgd(step, gradients.span(), with_buffer.span(), momentum_buffer.span());
  host::Sgd(step, gradients.span(), without_buffer.span(), {});

  for (std::size_t i = 0; i < length; ++i) {
    ASSERT_EQ(Bits(without_buffer[i]), Bits(with_buffer[i])) << i;
  }
  EXPECT_TRUE(without_buffer.Intact());
}

TEST_P(SgdLengthTest, ANonFiniteGradientSpoilsItsOwnParameterAlone) {
  const std::size_t length = GetParam();
  if (length == 0) return;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Guarded gradients(length);
    Guarded parameters(length);
    Guarded momentum_buffer(length);
    gradients[length - 1] = bad;

    host::Sgd({.learning_rate = 0.1f, .momentum = 0.9f}, gradients.span(), parameters.span(),
              momentum_buffer.span());

    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(std::isfinite(parameters[i]), i != length - 1) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, SgdLengthTest, testing::ValuesIn(kLengths));

TEST(SgdTest, ARateOfZeroChangesTheMomentumAlone) {
  const float gradients[] = {1, 2};
  float parameters[] = {5, 6};
  float momentum_buffer[] = {0, 0};

  host::Sgd({.learning_rate = 0, .momentum = 0.9f}, gradients, parameters, momentum_buffer);

  EXPECT_EQ(parameters[0], 5);
  EXPECT_EQ(parameters[1], 6);
  EXPECT_EQ(momentum_buffer[1], 2);
}

TEST(SgdDeathTest, RefusesWhatItsContractExcludes) {
  std::vector<float> four(4);
  std::vector<float> three(3);

  EXPECT_DEATH(host::Sgd({}, three, four, {}), "check failed");
  EXPECT_DEATH(host::Sgd({.momentum = 0.9f}, four, four, {}), "check failed");
  EXPECT_DEATH(host::Sgd({.momentum = 0.9f}, four, four, three), "check failed");
  EXPECT_DEATH(host::Sgd({.nesterov = true}, four, four, four), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
