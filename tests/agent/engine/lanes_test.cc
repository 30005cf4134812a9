#include "agent/engine/lanes.h"

#include <vector>

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

TEST(LanesTest, SumsOfWrittenLanesReadAsTotals) {
  const Lanes first{
      .samples = 7, .loss_sum = 3.5, .samples_gradient_norm2 = 2, .members = 1, .plan_votes = 1};
  const Lanes second{.samples = 5,
                     .loss_sum = 1.25,
                     .samples_gradient_norm2 = 1,
                     .members = 1,
                     .nonfinite = 1,
                     .stop_votes = 1,
                     .discard_votes = 1,
                     .suspend_votes = 1};
  std::vector<float> a(LaneCount(2));
  std::vector<float> b(LaneCount(2));
  WriteLanes(first, 0, a);
  WriteLanes(second, 1, b);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];

  const Lanes sum = ReadLanes(a);

  EXPECT_EQ(sum.samples, 12);
  EXPECT_EQ(sum.loss_sum, 4.75);
  EXPECT_EQ(sum.samples_gradient_norm2, 3);
  EXPECT_EQ(sum.members, 2);
  EXPECT_EQ(sum.nonfinite, 1);
  EXPECT_EQ(sum.plan_votes, 1);
  EXPECT_EQ(sum.stop_votes, 1);
  EXPECT_EQ(sum.discard_votes, 1);
  EXPECT_EQ(sum.suspend_votes, 1);
  EXPECT_EQ(ToCounts(sum.member_samples), (std::vector<std::uint64_t>{7, 5}));
}

TEST(LanesTest, CountsAreExactUpToTheBoundOfARound) {
  std::vector<float> tail(LaneCount(1));
  const std::uint64_t most = std::uint64_t{1} << 24;

  WriteLanes({.samples = static_cast<double>(most)}, 0, tail);
  const Lanes read = ReadLanes(tail);

  EXPECT_EQ(ToCounts(read.member_samples)[0], most);
  EXPECT_EQ(read.samples, static_cast<double>(most));
}

}  // namespace
}  // namespace tactus::engine
