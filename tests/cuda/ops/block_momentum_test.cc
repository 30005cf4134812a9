#include "cuda/ops/block_momentum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "cuda/ops/vector.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

std::uint32_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }

void ExpectSame(const Guarded& found, const Guarded& expected) {
  for (std::size_t i = 0; i < found.span().size(); ++i) {
    ASSERT_EQ(Bits(found.span()[i]), Bits(expected.span()[i])) << i;
  }
  EXPECT_TRUE(found.Intact());
}

// The same in single operations over copies.
void ByParts(const BlockMomentumStep& step, const BlockMomentumBuffers& buffers) {
  std::copy(buffers.start.begin(), buffers.start.end(), buffers.parameters.begin());
  if (step.momentum == 0 || step.learning_rate == 0) {
    return host::Axpy(static_cast<float>(step.scale), buffers.delta, buffers.parameters);
  }
  host::Scale(static_cast<float>(step.momentum), buffers.momentum);
  host::Axpy(static_cast<float>(-step.scale / step.learning_rate), buffers.delta, buffers.momentum);
  host::Axpy(static_cast<float>(-step.learning_rate), buffers.momentum, buffers.parameters);
}

class BlockMomentumTest
    : public testing::TestWithParam<std::tuple<std::size_t, BlockMomentumStep>> {};

TEST_P(BlockMomentumTest, IsBitIdenticalToItsSingleOperationsOverThreeWindows) {
  const auto [length, step] = GetParam();
  Rng rng(length);
  Guarded start = RandomBuffer(rng, length);
  Guarded momentum(length);
  Guarded parameters(length);
  Guarded expected_momentum(length);
  Guarded expected(length);

  for (int window = 0; window < 3; ++window) {
    const Guarded delta = RandomBuffer(rng, length, 7);
    host::BlockMomentum(step, {start.span(), delta.span(), momentum.span(), parameters.span()});
    ByParts(step, {start.span(), delta.span(), expected_momentum.span(), expected.span()});

    ExpectSame(parameters, expected);
    ExpectSame(momentum, expected_momentum);
    start = parameters;
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndSteps, BlockMomentumTest,
                         testing::Combine(testing::ValuesIn(kLengths),
                                          testing::Values(BlockMomentumStep{1.0 / 7, 0.1, 0},
                                                          BlockMomentumStep{1.0 / 7, 0, 0.3},
                                                          BlockMomentumStep{1.0 / 7, 0.1, 0.3},
                                                          BlockMomentumStep{1, 0.03, 0.9})));

TEST(BlockMomentumTest, FollowsItsFormula) {
  const std::vector<float> start = {1, 2};
  const std::vector<float> delta = {8, -4};
  std::vector<float> momentum = {1, 0};
  std::vector<float> parameters(2);

  host::BlockMomentum({.scale = 0.25, .learning_rate = 0.5, .momentum = 0.5},
                      {start, delta, momentum, parameters});

  // u <- 0.5 u - delta / 2; x <- start - u / 2.
  EXPECT_EQ(momentum, (std::vector<float>{-3.5f, 2}));
  EXPECT_EQ(parameters, (std::vector<float>{2.75f, 1}));
}

TEST(BlockMomentumTest, WithoutMomentumNeedsNoBufferAndTouchesNone) {
  const std::vector<float> start = {1, 2};
  const std::vector<float> delta = {8, -4};
  std::vector<float> momentum = {1, 0};
  std::vector<float> with(2);
  std::vector<float> without(2);

  host::BlockMomentum({.scale = 0.25, .momentum = 0.5}, {start, delta, momentum, with});
  host::BlockMomentum({.scale = 0.25, .momentum = 0.5}, {start, delta, {}, without});

  EXPECT_EQ(with, (std::vector<float>{3, 1}));
  EXPECT_EQ(without, with);
  EXPECT_EQ(momentum, (std::vector<float>{1, 0}));
}

TEST(BlockMomentumTest, BehindAGateThatIsShutTheWindowIsUndoneUnlessTheGroupWasLost) {
  const std::vector<float> start = {1, 2};
  const std::vector<float> delta = {8, -4};
  for (const bool lost : {false, true}) {
    const std::vector<double> gate = {0, 0, lost ? 1.0 : 0.0};
    std::vector<float> momentum = {1, 0};
    std::vector<float> parameters = {5, 6};

    host::BlockMomentum({.learning_rate = 0.5, .momentum = 0.5, .gate = gate.data()},
                        {start, delta, momentum, parameters});

    EXPECT_EQ(parameters, lost ? (std::vector<float>{5, 6}) : start);
    EXPECT_EQ(momentum, (std::vector<float>{1, 0}));
  }
}

class ParameterDeltaTest : public testing::TestWithParam<std::size_t> {};

TEST_P(ParameterDeltaTest, IsBitIdenticalToAddingTheStartTimesMinusOne) {
  const std::size_t length = GetParam();
  Rng rng(length);
  const Guarded now = RandomBuffer(rng, length);
  const Guarded start = RandomBuffer(rng, length);
  Guarded expected = now;
  Guarded in_place = now;
  Guarded delta(length);

  host::ParameterDelta(now.span(), start.span(), delta.span());
  host::ParameterDelta(in_place.span(), start.span(), in_place.span());
  host::Axpy(-1, start.span(), expected.span());

  ExpectSame(delta, expected);
  ExpectSame(in_place, expected);
}

INSTANTIATE_TEST_SUITE_P(Lengths, ParameterDeltaTest, testing::ValuesIn(kLengths));

TEST(ParameterDeltaTest, PointsFromTheStartToNow) {
  const std::vector<float> now = {3};
  const std::vector<float> start = {1};
  std::vector<float> delta(1);

  host::ParameterDelta(now, start, delta);

  EXPECT_EQ(delta[0], 2);
}

TEST(BlockMomentumTest, ANonFiniteDeltaSpoilsItsOwnParameterAlone) {
  std::vector<float> start(20, 1);
  std::vector<float> delta(20, 1);
  std::vector<float> momentum(20);
  std::vector<float> parameters(20);
  delta[3] = std::numeric_limits<float>::quiet_NaN();

  host::BlockMomentum({.learning_rate = 0.1, .momentum = 0.5},
                      {start, delta, momentum, parameters});

  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(std::isfinite(parameters[i]), i != 3) << i;
}

TEST(BlockMomentumDeathTest, RefusesUnequalLengths) {
  std::vector<float> three(3);
  std::vector<float> four(4);
  const BlockMomentumStep step{.learning_rate = 0.1, .momentum = 0.5};

  EXPECT_DEATH(host::BlockMomentum(step, {four, four, three, four}), "check failed");
  EXPECT_DEATH(host::BlockMomentum(step, {four, three, four, four}), "check failed");
  EXPECT_DEATH(host::BlockMomentum(step, {three, four, four, four}), "check failed");
  EXPECT_DEATH(host::ParameterDelta(four, three, four), "check failed");
  EXPECT_DEATH(host::ParameterDelta(three, four, four), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
