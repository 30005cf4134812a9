#include "agent/engine/combine/residual_encoding.h"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"

namespace tactus::engine {
namespace {

using ::testing::Each;

// What a group of two has left after a round; of every encoding that leaves something out.
class ResidualEncodingTest : public ::testing::TestWithParam<policies::Encoding> {
 protected:
  ResidualEncodingTest() {
    group_.Sum(buffers_, {.number = 0});
    group_.Settle(true);
    left_ = group_.LeftOver(0);
  }

  std::vector<std::vector<float>> Zeros(std::size_t members = 2) const {
    return std::vector(members, std::vector<float>(group_.length()));
  }

  EncodedGroup group_ =
      EncodedGroup({.members = 2,
                    .kind = GetParam(),
                    .segments = {{.name = "a", .length = 3000, .shape = {30, 100}},
                                 {.name = "b", .length = 5000, .shape = {50, 100}}},
                    .pieces = 2});
  const std::vector<std::vector<float>> buffers_ = WholeBuffers(group_, 2, 33);
  std::vector<float> left_;
};

TEST_P(ResidualEncodingTest, LeavesWithLaterRounds) {
  EXPECT_NE(group_.Sum(Zeros(), {.number = 1})[0], Zeros()[0]);
  group_.Settle(true);
  EXPECT_NE(group_.LeftOver(0), left_);
}

TEST_P(ResidualEncodingTest, StaysAsItWasInARoundThatIsNotApplied) {
  auto spoilt = buffers_;
  spoilt[1][3] = std::numeric_limits<float>::infinity();

  for (const auto& buffers : {buffers_, spoilt}) {
    group_.Sum(buffers, {.number = 1});
    group_.Settle(false);

    EXPECT_EQ(group_.LeftOver(0), left_);
  }
}

// A group may be lost and the same round be run again by the next, with as many samples.
TEST_P(ResidualEncodingTest, ChangesWithARoundThatIsRunAgain) {
  group_.Sum(buffers_, {.number = 1});
  group_.Settle(false);
  group_.Sum(Zeros(), {.number = 1});
  group_.Settle(true);

  EXPECT_NE(group_.LeftOver(0), left_);
}

// S6, for the sum over twice as many samples: by a power of two, so to the bit.
TEST_P(ResidualEncodingTest, CountsInUpdates) {
  group_.Sum(Zeros(), {.number = 1, .samples = 2});
  group_.Settle(false);

  const std::vector<float> left = group_.LeftOver(0);
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_EQ(left[i], 2 * left_[i]);
}

TEST_P(ResidualEncodingTest, IsGoneWhenSomethingElseTravels) {
  EXPECT_THAT(group_.Sum(Zeros(), {.number = 1, .changes = true})[0], Each(0));
}

TEST_P(ResidualEncodingTest, IsForgotten) {
  group_.encodings(0).Forget();
  group_.encodings(1).Forget();

  EXPECT_THAT(group_.Sum(Zeros(), {.number = 1})[0], Each(0));
}

TEST_P(ResidualEncodingTest, StaysWhereTheGroupBeginsAnew) {
  group_.encodings(0).BeginAnew();
  group_.encodings(1).BeginAnew();

  EXPECT_EQ(group_.LeftOver(0), left_);
  EXPECT_NE(group_.Sum(Zeros(), {.number = 1})[0], Zeros()[0]);
}

TEST_P(ResidualEncodingTest, GoesOnFromAState) {
  std::map<std::string, std::vector<float>> states[2];
  for (const int rank : {0, 1}) {
    for (const Residual& residual : group_.encodings(rank).Residuals()) {
      states[rank][residual.name] = {residual.values.begin(), residual.values.end()};
    }
  }
  const auto next = group_.Sum(buffers_, {.number = 1, .samples = 4});
  group_.Settle(true);
  const std::vector<float> left = group_.LeftOver(1);

  for (const int rank : {0, 1}) group_.encodings(rank).Restore(states[rank]);

  EXPECT_EQ(group_.Sum(buffers_, {.number = 1, .samples = 4}), next);
  group_.Settle(true);
  EXPECT_EQ(group_.LeftOver(1), left);
}

// As groups over other transports have other buckets.
TEST_P(ResidualEncodingTest, OutlivesPiecesThatAreCutAnew) {
  const std::vector<float> sum = group_.Sum(buffers_, {.number = 1})[0];
  group_.Settle(false);
  group_.CutInto(1);

  EXPECT_EQ(group_.Sum(buffers_, {.number = 1})[0], sum);
  group_.Settle(false);
  group_.CutInto(2);
  EXPECT_EQ(group_.Sum(buffers_, {.number = 1})[0], sum);
}

// Those who stay keep theirs, and those who come have none; nothing of either is lost. A member by
// itself sends nothing, and so leaves nothing out.
TEST_P(ResidualEncodingTest, GoesOnInGroupsOfOtherSizes) {
  for (const int members : {5, 1, 3}) {
    group_.Regroup(members);
    const auto count = static_cast<std::size_t>(members);
    std::vector<double> owed(group_.length() - EncodedGroup::kLanes);
    for (int rank = 0; rank < members && members > 1; ++rank) {
      if (group_.encodings(rank).Residuals().empty()) continue;
      const std::vector<float> left = group_.LeftOver(rank);
      for (std::size_t i = 0; i < owed.size(); ++i) owed[i] += left[i];
    }

    const auto sums = group_.Sum(Zeros(count), {.number = 1});
    group_.Settle(true);

    EXPECT_TRUE(AllAlike(sums));
    for (int rank = 0; rank < members && members > 1; ++rank) {
      const std::vector<float> left = group_.LeftOver(rank);
      for (std::size_t i = 0; i < owed.size(); ++i) owed[i] -= left[i];
    }
    for (std::size_t i = 0; i < owed.size(); ++i) ASSERT_NEAR(owed[i], sums[0][i], 1e-4) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ResidualEncodingTest,
                         ::testing::Values(policies::Encoding::kSketch,
                                           policies::Encoding::kAdacomp),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

}  // namespace
}  // namespace tactus::engine
