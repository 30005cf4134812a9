#include "cuda/ops/frozen_lamb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"

namespace tactus::cuda {
namespace {

constexpr std::uint64_t kManySteps = 1'000'000;  // steps after which no bias is left

struct FrozenState {
  std::vector<float> gradients;
  std::vector<float> parameters;
  std::vector<float> first;
  std::vector<float> second;
  std::vector<float> fresh;

  FrozenLambBuffers buffers() { return {gradients, parameters, first, second, fresh}; }
};

// A whole step of the host.
void FrozenLamb(const FrozenLambStep& step, const SegmentTable& segments,
                const FrozenLambBuffers& buffers, const FrozenLambLayers& layers) {
  std::vector<double> sums(kFrozenLambSums * segments.size());
  std::vector<double> rates(segments.size());
  host::FrozenLambSums(step, segments, buffers, sums);
  FrozenLambRates(step, sums, layers, rates);
  host::FrozenLambMove(step, segments, buffers, rates);
}

SegmentTable OneTensor(std::size_t length) { return {{.name = "a", .length = length}}; }

FrozenState RandomFrozenState(Rng& rng, std::size_t length) {
  FrozenState state;
  for (std::size_t i = 0; i < length; ++i) {
    const auto normal = [&] { return static_cast<float>(rng.Normal()); };
    state.gradients.push_back(10 * normal());
    state.parameters.push_back(normal());
    state.first.push_back(0.1f * normal());
    state.second.push_back(0.01f + std::abs(0.01f * normal()));
    state.fresh.push_back(0.01f + std::abs(0.01f * normal()));
  }
  return state;
}

// Section 7h, TV4.
TEST(FrozenLambTest, TestVectorFour) {
  FrozenState state{.gradients = {.3f, .1f},
                    .parameters = {1, -2},
                    .first = {.1f, -.2f},
                    .second = {.04f, .01f},
                    .fresh = {.03f, .02f}};
  const std::vector<double> ratios = {.5};
  std::vector<double> factors = {1};

  FrozenLamb({.lamb = {.learning_rate = .1,
                       .beta1 = .9,
                       .beta2 = .999,
                       .epsilon = 1e-8f,
                       .weight_decay = .01,
                       .step = kManySteps},
              .frozen_step = kManySteps},
             OneTensor(2), state.buffers(), {.ratios = ratios, .factors = factors});

  EXPECT_NEAR(state.first[0], .12, 1e-7);
  EXPECT_NEAR(state.first[1], -.17, 1e-7);
  EXPECT_NEAR(state.fresh[0], .03006, 1e-8);
  EXPECT_NEAR(state.fresh[1], .01999, 1e-8);
  EXPECT_EQ(state.second, (std::vector<float>{.04f, .01f}));
  EXPECT_NEAR(factors[0], 1.1, 1e-12);
  EXPECT_NEAR(state.parameters[0], .96645, 1e-6);
  EXPECT_NEAR(state.parameters[1], -1.9054, 1e-6);
}

// The same with a threshold that does not cut: phi raw 1.1535476, omega .9878408.
TEST(FrozenLambTest, TestVectorFourBeforeItsThreshold) {
  FrozenState state{.gradients = {.3f, .1f},
                    .parameters = {1, -2},
                    .first = {.1f, -.2f},
                    .second = {.04f, .01f},
                    .fresh = {.03f, .02f}};
  const std::vector<double> ratios = {.5};
  std::vector<double> factors = {1};

  FrozenLamb({.lamb = {.epsilon = 1e-8f, .weight_decay = .01, .step = kManySteps},
              .frozen_step = kManySteps,
              .factor = {.threshold = .5}},
             OneTensor(2), state.buffers(), {.ratios = ratios, .factors = factors});

  EXPECT_NEAR(factors[0], 1.1516805, 1e-6);
}

// TV5.
TEST(ClippedFactorTest, TestVectorFive) {
  double factor = 1;
  const double raw[] = {1.05, 2, 9, .2, .2};
  const double expected[] = {1.05, 1.155, 1.2705, 1.14345, 1.029105};
  for (std::size_t i = 0; i < 5; ++i) {
    factor = ClippedFactor(raw[i], factor, {});
    EXPECT_NEAR(factor, expected[i], 1e-12);
  }

  const auto steps_to = [](double raw_factor, double bound) {
    int steps = 0;
    for (double at = 1; at != bound; ++steps) at = ClippedFactor(raw_factor, at, {});
    return steps;
  };
  EXPECT_EQ(steps_to(100, 4), 15);
  EXPECT_EQ(steps_to(0, .5), 7);
}

// Invariant 6, whatever comes.
TEST(ClippedFactorTest, StaysWithinBothBounds) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const FactorBounds bounds{.min = 0.1 + 0.9 * rng.Uniform(),
                              .max = 1 + 5 * rng.Uniform(),
                              .threshold = 0.01 + 0.9 * rng.Uniform()};
    double last = 1;
    for (int i = 0; i < 50; ++i) {
      const double raw = rng.Below(20) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                            : std::exp(3 * rng.Normal());
      const double factor = ClippedFactor(raw, last, bounds);
      ASSERT_GE(factor, bounds.min) << seed;
      ASSERT_LE(factor, bounds.max) << seed;
      ASSERT_GE(factor, last * (1 - bounds.threshold)) << seed;
      ASSERT_LE(factor, last * (1 + bounds.threshold)) << seed;
      last = factor;
    }
  }
}

// The formula of the header in float64.
struct NaiveFrozen {
  std::vector<double> parameters{};
  double factor = 1;
};

NaiveFrozen NaiveFrozenLamb(const FrozenLambStep& step, const FrozenState& before, double ratio) {
  const LambStep& lamb = step.lamb;
  const double t = static_cast<double>(lamb.step);
  const double f = static_cast<double>(step.frozen_step);
  std::vector<double> direction;
  double own2 = 0;
  double norm2 = 0;
  double phi = 0;
  for (std::size_t i = 0; i < before.gradients.size(); ++i) {
    const double g = static_cast<double>(lamb.gradient_scale) * before.gradients[i];
    const double m = lamb.beta1 * before.first[i] + (1 - lamb.beta1) * g;
    const double w = lamb.beta2 * before.fresh[i] + (1 - lamb.beta2) * g * g;
    const double epsilon = lamb.epsilon;
    const double d = std::sqrt(before.second[i] / (1 - std::pow(lamb.beta2, f))) + epsilon;
    const double r = std::sqrt(w / (1 - std::pow(lamb.beta2, t))) + epsilon;
    const double own = m / (1 - std::pow(lamb.beta1, t)) / d;
    direction.push_back(own + lamb.weight_decay * before.parameters[i]);
    own2 += own * own;
    norm2 += direction.back() * direction.back();
    phi = std::max(phi, d / r);
  }
  if (lamb.weight_decay > 0) {
    const double share = std::min(1.0, std::sqrt(own2 / norm2));
    phi = phi * share + 1 - share;
  }
  NaiveFrozen after{.factor = ClippedFactor(phi, 1, step.factor)};
  for (std::size_t i = 0; i < direction.size(); ++i) {
    after.parameters.push_back(before.parameters[i] -
                               lamb.learning_rate * ratio * after.factor * direction[i]);
  }
  return after;
}

// Tolerances as those of host::Lamb: 15 roundings of u's terms, which are below 100 here, times a
// rate below 0.1, and one of x; for the factor those of its roots.
TEST(FrozenLambTest, AgreesWithItsFormulaInFloat64) {
  for (const std::size_t length : {1, 31, 2048, 5000}) {
    for (const double decay : {0.0, 0.01}) {
      Rng rng(length);
      FrozenState state = RandomFrozenState(rng, length);
      const FrozenState before = state;
      const FrozenLambStep step{.lamb = {.learning_rate = 0.01,
                                         .weight_decay = decay,
                                         .gradient_scale = 0.125f,
                                         .step = 90},
                                .frozen_step = 40};
      const std::vector<double> ratios = {1.5};
      std::vector<double> factors = {1};

      FrozenLamb(step, OneTensor(length), state.buffers(), {.ratios = ratios, .factors = factors});

      const NaiveFrozen expected = NaiveFrozenLamb(step, before, 1.5);
      EXPECT_NEAR(factors[0], expected.factor, 1e-6);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_NEAR(state.parameters[i], expected.parameters[i], 3e-5) << i;
      }
      EXPECT_EQ(state.second, before.second);
    }
  }
}

TEST(FrozenLambTest, WhatNeverHadAGradientTellsNothing) {
  FrozenState state{.gradients = {1, 0},
                    .parameters = {1, 1},
                    .first = {1, 0},
                    .second = {1, 0},
                    .fresh = {16, 0}};
  const std::vector<double> ratios = {1};
  std::vector<double> factors = {1};

  FrozenLamb({.lamb = {.learning_rate = 0.1, .step = kManySteps}, .frozen_step = kManySteps},
             OneTensor(2), state.buffers(), {.ratios = ratios, .factors = factors});

  EXPECT_NEAR(factors[0], 0.9, 1e-12);  // raw: a quarter
  EXPECT_EQ(state.parameters[1], 1);
}

TEST(FrozenLambTest, AShutGateChangesNothing) {
  Rng rng(3);
  FrozenState state = RandomFrozenState(rng, 20);
  const FrozenState before = state;
  const double gate[kGateLength] = {0.5, 0, 0, 0};
  const FrozenLambStep step{.lamb = {.learning_rate = 0.1, .gate = gate}};
  std::vector<double> sums(kFrozenLambSums, -1);

  host::FrozenLambSums(step, OneTensor(20), state.buffers(), sums);
  host::FrozenLambMove(step, OneTensor(20), state.buffers(), std::vector<double>{-1});

  EXPECT_EQ(sums, std::vector<double>(kFrozenLambSums, -1));
  EXPECT_EQ(state.parameters, before.parameters);
  EXPECT_EQ(state.first, before.first);
  EXPECT_EQ(state.fresh, before.fresh);
}

// Each by itself, and what is of no length or between two stays.
TEST(FrozenLambTest, SegmentsHaveRatesOfTheirOwn) {
  Rng rng(5);
  const SegmentTable segments{{.name = "a", .offset = 0, .length = 3000},
                              {.name = "b", .offset = 3000, .length = 0},
                              {.name = "c", .offset = 3008, .length = 7}};
  FrozenState together = RandomFrozenState(rng, 3015);
  const FrozenState before = together;
  const FrozenLambStep step{.lamb = {.learning_rate = 0.01, .weight_decay = 0.01, .step = 9},
                            .frozen_step = 4};
  const std::vector<double> ratios = {1.5, 1, 0.5};
  std::vector<double> factors = {1, 1, 1};

  FrozenLamb(step, segments, together.buffers(), {.ratios = ratios, .factors = factors});

  EXPECT_EQ(factors[1], 1);
  for (const std::size_t i : {0, 2}) {
    const auto part = [&](const std::vector<float>& of) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(segments[i].offset);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(segments[i].length));
    };
    FrozenState alone{part(before.gradients), part(before.parameters), part(before.first),
                      part(before.second), part(before.fresh)};
    std::vector<double> factor = {1};
    FrozenLamb(step, OneTensor(segments[i].length), alone.buffers(),
               {.ratios = std::span(ratios).subspan(i, 1), .factors = factor});
    EXPECT_EQ(part(together.parameters), alone.parameters);
    EXPECT_EQ(part(together.fresh), alone.fresh);
    EXPECT_EQ(factors[i], factor[0]);
  }
  for (std::size_t i = 3000; i < 3008; ++i) EXPECT_EQ(together.parameters[i], before.parameters[i]);
}

}  // namespace
}  // namespace tactus::cuda
