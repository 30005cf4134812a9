#include "cuda/ops/lamb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/ops/adam.h"
#include "tests/cuda/ops/lamb_state.h"

namespace tactus::cuda {
namespace {

// By hand: at the first step m / (1 - beta1) = g and v / (1 - beta2) = g^2, so u = sign(g), of norm
// sqrt(2), and ||x|| = 5.
TEST(LambTest, TheFirstStepMovesBySignsTimesTheRatio) {
  LambState state(2);
  state.parameters[0] = 3;
  state.parameters[1] = -4;
  state.gradients[0] = 20;
  state.gradients[1] = 0.5f;

  host::Lamb({.learning_rate = 0.1}, OneSegment(2), state.buffers());

  const double moved = 0.1 * 5 / std::sqrt(2.0);
  EXPECT_NEAR(state.parameters[0], 3 - moved, 2e-6);  // epsilon / 0.5 = 2e-6 of it
  EXPECT_NEAR(state.parameters[1], -4 - moved, 2e-6);
}

// By hand: g = (1, 1) and then (1, -1) with beta1 = beta2 = 1/2. m = (3/4, -1/4), corrected
// (1, -1/3); v = (3/4, 3/4), corrected (1, 1); u = (1, -1/3), of norm sqrt(10) / 3.
TEST(LambTest, TheSecondStepHasCorrectedMoments) {
  LambState state(2);
  const LambStep first{.learning_rate = 0, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 1e-12f};
  LambStep second = first;
  second.learning_rate = 0.25;
  second.step = 2;
  state.parameters[0] = 0.6f;
  state.parameters[1] = 0.8f;
  for (float& gradient : state.gradients.span()) gradient = 1;

  host::Lamb(first, OneSegment(2), state.buffers());
  state.gradients[1] = -1;
  host::Lamb(second, OneSegment(2), state.buffers());

  const double rate = 0.25 * 3 / std::sqrt(10.0);
  EXPECT_NEAR(state.parameters[0], 0.6 - rate, 1e-6);
  EXPECT_NEAR(state.parameters[1], 0.8 + rate / 3, 1e-6);
}

TEST(LambTest, ParametersOfZeroHaveARatioOfOne) {
  LambState state(3);
  state.gradients[0] = 4;
  state.gradients[1] = -4;

  host::Lamb({.learning_rate = 0.1, .weight_decay = 0.3}, OneSegment(3), state.buffers());

  EXPECT_NEAR(state.parameters[0], -0.1f, 1e-6f);
  EXPECT_NEAR(state.parameters[1], 0.1f, 1e-6f);
  EXPECT_EQ(state.parameters[2], 0);
}

TEST(LambTest, ADirectionOfZeroLeavesTheParametersAlone) {
  LambState state(2);
  state.parameters[0] = 0.5f;
  state.parameters[1] = -2;

  host::Lamb({.learning_rate = 0.1}, OneSegment(2), state.buffers());

  EXPECT_EQ(state.parameters[0], 0.5f);
  EXPECT_EQ(state.parameters[1], -2);
}

TEST(LambTest, DecayAloneShrinksByTheLearningRateUnlessTheRatioIsBounded) {
  LambState free(1);
  LambState bounded(1);
  free.parameters[0] = 8;
  bounded.parameters[0] = 8;
  const LambStep step{.learning_rate = 0.25, .weight_decay = 0.0625};  // ratio 16
  LambStep bounded_step = step;
  bounded_step.ratio_max = 4;

  host::Lamb(step, OneSegment(1), free.buffers());
  host::Lamb(bounded_step, OneSegment(1), bounded.buffers());

  EXPECT_EQ(free.parameters[0], 6);       // 8 - 0.25 * 16 * 0.5
  EXPECT_EQ(bounded.parameters[0], 7.5);  // 8 - 0.25 * 4 * 0.5
}

TEST(LambTest, ARatioHeldAtOneIsAdamWithDecoupledDecay) {
  Rng rng(3);
  LambState state = RandomLambState(rng, 1000);
  LambState twin = state;

  host::Lamb(
      {.learning_rate = 0.01, .weight_decay = 0.1, .ratio_min = 1, .ratio_max = 1, .step = 4},
      OneSegment(1000), state.buffers());
  host::Adam(
      {.learning_rate = 0.01, .epsilon = 1e-6f, .weight_decay = 0.1, .decoupled = true, .step = 4},
      twin.gradients.span(), twin.parameters.span(), twin.first.span(), twin.second.span());

  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_NEAR(state.parameters[i], twin.parameters[i],
                8 * 0x1p-24f * std::max(1.0f, std::abs(twin.parameters[i])))
        << i;
    ASSERT_EQ(state.first[i], twin.first[i]) << i;
    ASSERT_EQ(state.second[i], twin.second[i]) << i;
  }
}

TEST(LambTest, EverySegmentIsSteppedAsIfAloneAndThePaddingStays) {
  SegmentTable segments = {
      {.name = "a", .length = 5000}, {.name = "empty"}, {.name = "b", .length = 3}};
  AssignOffsets(segments);
  Rng rng(5);
  LambState state = RandomLambState(rng, FlatLength(segments));
  LambState alone = state;
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.01};

  host::Lamb(step, segments, state.buffers());
  for (const Segment& segment : segments) {
    host::Lamb(step, OneSegment(segment.length), alone.part(segment));
  }

  const auto same = [](const Guarded& a, const Guarded& b) {
    return std::equal(a.span().begin(), a.span().end(), b.span().begin());
  };
  EXPECT_TRUE(same(state.parameters, alone.parameters));
  EXPECT_TRUE(same(state.first, alone.first));
  EXPECT_TRUE(same(state.second, alone.second));
}

TEST(LambTest, ANonFiniteGradientSpoilsItsSegmentAlone) {
  const SegmentTable segments = {{.name = "a", .offset = 0, .length = 16},
                                 {.name = "b", .offset = 16, .length = 16}};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Rng rng(7);
    LambState state = RandomLambState(rng, 32);
    state.gradients[3] = bad;

    host::Lamb({.learning_rate = 0.1}, segments, state.buffers());

    for (std::size_t i = 0; i < 32; ++i) {
      ASSERT_EQ(std::isnan(state.parameters[i]), i < 16) << bad << " at " << i;
    }
  }
}

TEST(LambDeathTest, RefusesWhatItsContractExcludes) {
  LambState state(4);
  std::vector<float> three(3);
  const SegmentTable fits = OneSegment(4);
  LambBuffers short_gradients = state.buffers();
  short_gradients.gradients = three;
  LambBuffers short_first = state.buffers();
  short_first.first_moment = three;
  LambBuffers short_second = state.buffers();
  short_second.second_moment = three;

  EXPECT_DEATH(host::Lamb({}, fits, short_gradients), "check failed");
  EXPECT_DEATH(host::Lamb({}, fits, short_first), "check failed");
  EXPECT_DEATH(host::Lamb({}, fits, short_second), "check failed");
  EXPECT_DEATH(host::Lamb({.step = 0}, fits, state.buffers()), "check failed");
  EXPECT_DEATH(host::Lamb({.ratio_min = 2, .ratio_max = 1}, fits, state.buffers()), "check failed");
  EXPECT_DEATH(host::Lamb({}, OneSegment(5), state.buffers()), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
