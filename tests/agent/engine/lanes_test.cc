#include "agent/engine/combine/lanes.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

// The tail of a member of a group of `size`, as a device would write it.
struct Sums {
  double norm2 = 0;
  double loss = 0;
  double common_loss = 0;
};
std::vector<float> Written(const OwnLanes& own, std::size_t rank, std::size_t size,
                           const Sums& sums) {
  std::vector<float> tail(LaneCount(size));
  cuda::LaneSums lane_sums;
  lane_sums.norm2 = {&sums.norm2, 1};
  lane_sums.loss = {&sums.loss, 1};
  lane_sums.common_loss = {&sums.common_loss, 1};
  cuda::host::WriteLanes(LaneValuesOf(own, rank), lane_sums, tail);
  return tail;
}

TEST(LanesTest, SumsOfWrittenLanesReadAsTotals) {
  const OwnLanes first{.lanes = {.samples = 7, .common_samples = 2, .members = 1, .plan_votes = 1},
                       .gradient_samples = 7,
                       .divisor = 7};
  const OwnLanes second{.lanes = {.samples = 5,
                                  .common_samples = 1,
                                  .members = 1,
                                  .stop_votes = 1,
                                  .discard_votes = 1,
                                  .suspend_votes = 1,
                                  .regroup_votes = 1,
                                  .comparison_votes = 1,
                                  .residual_votes = 1},
                        .gradient_samples = 5};
  std::vector<float> a = Written(first, 0, 2, {.norm2 = 14, .loss = 3.5, .common_loss = 1.5});
  const std::vector<float> b =
      Written(second, 1, 2, {.norm2 = 0.5, .loss = 1.25, .common_loss = 0.25});
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];

  const Lanes sum = ReadLanes(a);

  EXPECT_EQ(sum.samples, 12);
  EXPECT_EQ(sum.loss_sum, 4.75);
  EXPECT_EQ(sum.common_samples, 3);
  EXPECT_EQ(sum.common_loss_sum, 1.75);
  EXPECT_EQ(sum.samples_gradient_norm2, 14.0 / 7 + 0.5 * 5);
  EXPECT_EQ(sum.members, 2);
  EXPECT_EQ(sum.nonfinite, 0);
  EXPECT_EQ(sum.plan_votes, 1);
  EXPECT_EQ(sum.stop_votes, 1);
  EXPECT_EQ(sum.discard_votes, 1);
  EXPECT_EQ(sum.suspend_votes, 1);
  EXPECT_EQ(sum.regroup_votes, 1);
  EXPECT_EQ(sum.comparison_votes, 1);
  EXPECT_EQ(sum.residual_votes, 1);
  EXPECT_EQ(ToCounts(sum.member_samples), (std::vector<std::uint64_t>{7, 5}));
}

// Of 3 samples, which one of two members brought: 3 ||sum / 3||^2 of what both count of the sum.
TEST(LanesTest, OfAReplicaTheNormsOfItsMembersPartsAddUp) {
  const OwnLanes first{.lanes = {.samples = 3, .members = 1}, .gradient_samples = 3, .divisor = 3};
  const OwnLanes second{.lanes = {.members = 1}, .gradient_samples = 3, .divisor = 3};
  std::vector<float> a = Written(first, 0, 2, {.norm2 = 12});
  const std::vector<float> b = Written(second, 1, 2, {.norm2 = 6});
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];

  const Lanes sum = ReadLanes(a);

  EXPECT_EQ(sum.samples, 3);
  EXPECT_EQ(sum.samples_gradient_norm2, (12.0 + 6.0) / 3);
}

TEST(LanesTest, ASpreadIsOverReplicas) {
  const std::vector<float> samples = {3, 0, 0, 0, 2, 4};
  const Lanes lanes{.member_samples = samples};

  EXPECT_EQ(SpreadOf(lanes, 1).contributors, 3u);
  EXPECT_EQ(SpreadOf(lanes, 1).samples_squared, 9 + 4 + 16);
  EXPECT_EQ(SpreadOf(lanes, 2).contributors, 2u);
  EXPECT_EQ(SpreadOf(lanes, 2).samples_squared, 9 + 36);
}

TEST(LanesTest, WhatIsNotFiniteIsSaidAndBringsNoLossAndNoNorm) {
  const double infinity = std::numeric_limits<double>::infinity();
  const OwnLanes own{.lanes = {.samples = 7, .common_samples = 7, .members = 1, .stop_votes = 1},
                     .gradient_samples = 7,
                     .divisor = 7};
  const std::vector<float> by_norm = Written(own, 0, 1, {.norm2 = infinity, .loss = 3.5});
  const std::vector<float> by_loss = Written(own, 0, 1, {.norm2 = 2, .loss = std::nan("")});

  for (const std::vector<float>& tail : {by_norm, by_loss}) {
    const Lanes lanes = ReadLanes(tail);
    EXPECT_EQ(lanes.nonfinite, 1);
    EXPECT_EQ(lanes.loss_sum, 0);
    EXPECT_EQ(lanes.common_samples, 0);
    EXPECT_EQ(lanes.common_loss_sum, 0);
    EXPECT_EQ(lanes.samples_gradient_norm2, 0);
    EXPECT_EQ(lanes.samples, 7);
    EXPECT_EQ(lanes.stop_votes, 1);
  }
}

TEST(LanesTest, CountsAreExactUpToTheBoundOfARound) {
  const std::uint64_t most = std::uint64_t{1} << 24;

  const std::vector<float> tail =
      Written({.lanes = {.samples = static_cast<double>(most)}}, 0, 1, {});
  const Lanes read = ReadLanes(tail);

  EXPECT_EQ(ToCounts(read.member_samples)[0], most);
  EXPECT_EQ(read.samples, static_cast<double>(most));
}

}  // namespace
}  // namespace tactus::engine
