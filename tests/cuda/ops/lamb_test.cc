#include "cuda/ops/lamb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cuda/ops/adam.h"
#include "tests/cuda/ops/lamb_state.h"

namespace tactus::cuda {
namespace {

bool Same(const Guarded& a, const Guarded& b) { return std::ranges::equal(a.span(), b.span()); }

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

  EXPECT_TRUE(Same(state.parameters, alone.parameters));
  EXPECT_TRUE(Same(state.first, alone.first));
  EXPECT_TRUE(Same(state.second, alone.second));
}

TEST(LambTest, TheSumsAreThoseOfTheStepAndNothingChangesForThem) {
  SegmentTable segments = {
      {.name = "a", .length = 5000}, {.name = "empty"}, {.name = "b", .length = 3}};
  AssignOffsets(segments);
  Rng rng(9);
  LambState state = RandomLambState(rng, FlatLength(segments));
  LambState stepped = state;
  LambState given = state;
  const LambState before = state;
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.01, .step = 3};
  std::vector<double> sums(kLambSumsPerSegment * segments.size(), -1);

  EXPECT_TRUE(host::LambSums(step, segments, state.buffers(), sums));

  EXPECT_TRUE(Same(state.parameters, before.parameters));
  EXPECT_TRUE(Same(state.first, before.first));
  EXPECT_TRUE(Same(state.second, before.second));
  EXPECT_TRUE(state.Intact());
  EXPECT_EQ(sums[2], 0);
  EXPECT_EQ(sums[3], 0);
  host::Lamb(step, segments, stepped.buffers());
  LambBuffers buffers = given.buffers();
  buffers.sums = sums;
  host::Lamb(step, segments, buffers);
  EXPECT_TRUE(Same(given.parameters, stepped.parameters));
  EXPECT_TRUE(Same(given.first, stepped.first));
  EXPECT_TRUE(Same(given.second, stepped.second));
}

// Norms in another order move the rate by 1 ulp at most, as the header has it of a twin.
TEST(LambTest, PartsWithTheSumsOfAllAreSteppedAsTheWhole) {
  constexpr std::size_t kLength = 6000;
  const SegmentTable parts = {{.name = "a", .offset = 0, .length = 1700},
                              {.name = "b", .offset = 1700, .length = kLength - 1700}};
  Rng rng(11);
  LambState whole = RandomLambState(rng, kLength);
  LambState apart = whole;
  LambState cut = whole;
  const LambState before = whole;
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.01, .step = 2};

  host::Lamb(step, OneSegment(kLength), whole.buffers());
  host::Lamb(step, parts, apart.buffers());
  std::vector<double> sums(kLambSumsPerSegment * parts.size());
  host::LambSums(step, parts, cut.buffers(), sums);
  for (std::size_t i = 0; i < kLambSumsPerSegment; ++i) {
    sums[i] += sums[kLambSumsPerSegment + i];
    sums[kLambSumsPerSegment + i] = sums[i];
  }
  LambBuffers buffers = cut.buffers();
  buffers.sums = sums;
  host::Lamb(step, parts, buffers);

  EXPECT_TRUE(Same(cut.first, whole.first));
  EXPECT_TRUE(Same(cut.second, whole.second));
  EXPECT_FALSE(Same(apart.parameters, whole.parameters)) << "norms of parts are no others";
  for (std::size_t i = 0; i < kLength; ++i) {
    const float expected = std::as_const(whole).parameters.span()[i];
    const float moved = expected - before.parameters.span()[i];
    ASSERT_NEAR(std::as_const(cut).parameters.span()[i], expected,
                0x1p-22f * std::abs(moved) + 0x1p-23f * std::abs(expected))
        << i;
  }
}

TEST(LambTest, ASumOfZeroLeavesTheRatioAtOne) {
  LambState state(1);
  state.parameters[0] = 8;
  const std::vector<double> sums = {0, 4};
  LambBuffers buffers = state.buffers();
  buffers.sums = sums;

  host::Lamb({.learning_rate = 0.25, .weight_decay = 0.0625}, OneSegment(1), buffers);

  EXPECT_EQ(state.parameters[0], 7.875);  // 8 - 0.25 * 0.5
}

TEST(LambTest, AGateThatIsShutLeavesTheSumsAlone) {
  LambState state(2);
  state.parameters[0] = 3;
  const std::vector<double> gate(kGateLength);
  std::vector<double> sums = {-1, -1};

  EXPECT_FALSE(host::LambSums({.gate = gate.data()}, OneSegment(2), state.buffers(), sums));

  EXPECT_EQ(sums, std::vector<double>({-1, -1}));
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
  std::vector<double> sums(1);
  LambBuffers short_sums = state.buffers();
  short_sums.sums = sums;
  EXPECT_DEATH(host::Lamb({}, fits, short_sums), "check failed");
  EXPECT_DEATH(host::LambSums({}, fits, state.buffers(), sums), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
