#include "cuda/ops/lamb_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/cuda/ops/lamb_state.h"

namespace tactus::cuda {
namespace {

bool Equal(const Guarded& a, const Guarded& b) { return std::ranges::equal(a.span(), b.span()); }

TEST(LambPartsTest, TheSumsAreThoseOfTheStepAndNothingChangesForThem) {
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

  EXPECT_TRUE(Equal(state.parameters, before.parameters));
  EXPECT_TRUE(Equal(state.first, before.first));
  EXPECT_TRUE(Equal(state.second, before.second));
  EXPECT_TRUE(state.Intact());
  EXPECT_EQ(sums[2], 0);
  EXPECT_EQ(sums[3], 0);
  host::Lamb(step, segments, stepped.buffers());
  host::LambOfParts(step, segments, given.buffers(), sums);
  EXPECT_TRUE(Equal(given.parameters, stepped.parameters));
  EXPECT_TRUE(Equal(given.first, stepped.first));
  EXPECT_TRUE(Equal(given.second, stepped.second));
}

// Norms in another order move the rate by 1 ulp at most, as the header has it of a twin.
TEST(LambPartsTest, PartsWithTheSumsOfAllAreSteppedAsTheWhole) {
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
  host::LambOfParts(step, parts, cut.buffers(), sums);

  EXPECT_TRUE(Equal(cut.first, whole.first));
  EXPECT_TRUE(Equal(cut.second, whole.second));
  EXPECT_FALSE(Equal(apart.parameters, whole.parameters)) << "norms of parts are no others";
  for (std::size_t i = 0; i < kLength; ++i) {
    const float expected = std::as_const(whole).parameters.span()[i];
    const float moved = expected - before.parameters.span()[i];
    ASSERT_NEAR(std::as_const(cut).parameters.span()[i], expected,
                0x1p-22f * std::abs(moved) + 0x1p-23f * std::abs(expected))
        << i;
  }
}

TEST(LambPartsTest, ASumOfZeroLeavesTheRatioAtOne) {
  LambState state(1);
  state.parameters[0] = 8;
  const std::vector<double> sums = {0, 4};

  host::LambOfParts({.learning_rate = 0.25, .weight_decay = 0.0625}, OneSegment(1), state.buffers(),
                    sums);

  EXPECT_EQ(state.parameters[0], 7.875);  // 8 - 0.25 * 0.5
}

TEST(LambPartsTest, AGateThatIsShutLeavesEverythingAlone) {
  LambState state(2);
  state.parameters[0] = 3;
  const std::vector<double> gate(kGateLength);
  std::vector<double> sums = {-1, -1};

  EXPECT_FALSE(host::LambSums({.gate = gate.data()}, OneSegment(2), state.buffers(), sums));

  EXPECT_EQ(sums, std::vector<double>({-1, -1}));
  state.gradients[0] = 1;
  host::LambOfParts({.learning_rate = 1, .gate = gate.data()}, OneSegment(2), state.buffers(),
                    sums);
  EXPECT_EQ(state.parameters[0], 3);
  EXPECT_EQ(state.first[0], 0);
}

TEST(LambPartsDeathTest, RefusesSumsOfOtherSegments) {
  LambState state(4);
  std::vector<double> sums(1);

  EXPECT_DEATH(host::LambSums({}, OneSegment(4), state.buffers(), sums), "check failed");
  EXPECT_DEATH(host::LambOfParts({}, OneSegment(4), state.buffers(), sums), "check failed");
  sums.resize(2);
  EXPECT_DEATH(host::LambSums({}, OneSegment(5), state.buffers(), sums), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
