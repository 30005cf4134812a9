#include "agent/engine/combine/adacomp_encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"

namespace tactus::engine {
namespace {

using ::testing::Each;

cuda::SegmentTable ConvolutionAndMatrix() {
  return {{.name = "convolution", .length = 2000, .shape = {10, 8, 5, 5}},
          {.name = "bias", .length = 10, .shape = {10}},
          {.name = "matrix", .length = 6000, .shape = {60, 100}},
          {.name = "none", .length = 0, .shape = {0, 3}}};
}

struct AdacompCase {
  int members = 2;
  Meeting meeting = Meeting::kInProcess;
};

std::vector<AdacompCase> AdacompCases() {
  std::vector<AdacompCase> cases;
  for (int members = 1; members <= 17; ++members) cases.push_back({members});
  for (const int members : {2, 3, 5}) cases.push_back({members, Meeting::kTcp});
  return cases;
}

class AdacompTest : public ::testing::TestWithParam<AdacompCase> {
 protected:
  EncodedGroup Group(std::size_t pieces = 2) const {
    return EncodedGroup({.members = GetParam().members,
                         .kind = policies::Encoding::kAdacomp,
                         .segments = ConvolutionAndMatrix(),
                         .meeting = GetParam().meeting,
                         .pieces = pieces});
  }
};

// Section 3g, invariants 1 and 7: what was put in is what came out and what all have left over.
TEST_P(AdacompTest, NothingIsLostAndAllHaveTheSame) {
  EncodedGroup group = Group();
  const std::size_t length = group.length() - EncodedGroup::kLanes;
  std::vector<double> gathered(length);
  for (std::uint64_t round = 0; round < 6; ++round) {
    const auto buffers = NormalBuffers(group, GetParam().members, round);
    const auto sums = group.Sum(buffers, {.number = round});
    group.Settle(true);

    EXPECT_TRUE(AllAlike(sums));
    const std::vector<float> dense = DenseSum(buffers);
    for (std::size_t i = 0; i < length; ++i) {
      gathered[i] += static_cast<double>(dense[i]) - static_cast<double>(sums[0][i]);
    }
  }

  for (int rank = 0; rank < GetParam().members; ++rank) {
    const std::vector<float> left = group.LeftOver(rank);
    for (std::size_t i = 0; i < length; ++i) gathered[i] -= left[i];
  }
  for (std::size_t i = 0; i < length; ++i) ASSERT_NEAR(gathered[i], 0, 1e-3) << i;
}

TEST_P(AdacompTest, SmallTensorsAndLanesAreSummedExactly) {
  EncodedGroup group = Group();
  const auto buffers = NormalBuffers(group, GetParam().members, 31);
  const std::vector<float> dense = DenseSum(buffers);

  const std::vector<float> sum = group.Sum(buffers)[0];

  const std::size_t bias = group.segments()[1].offset;
  for (std::size_t i = bias; i < bias + 10; ++i) EXPECT_EQ(sum[i], dense[i]);
  EXPECT_TRUE(
      std::equal(sum.end() - EncodedGroup::kLanes, sum.end(), dense.end() - EncodedGroup::kLanes));
}

TEST_P(AdacompTest, ARoundThatIsNotFiniteLeavesTheResidualAlone) {
  if (GetParam().members == 1) return;
  EncodedGroup group = Group();
  const auto buffers = NormalBuffers(group, GetParam().members, 32);
  group.Sum(buffers, {.number = 0});
  group.Settle(true);
  const std::vector<float> left = group.LeftOver(0);
  auto spoilt = buffers;
  spoilt.back()[3] = std::numeric_limits<float>::quiet_NaN();

  const auto sums = group.Sum(spoilt, {.number = 1});
  group.Settle(false);

  EXPECT_TRUE(AllAlike(sums));
  EXPECT_TRUE(std::isnan(sums[0][0]));
  EXPECT_EQ(group.LeftOver(0), left);
  const auto next = group.Sum(buffers, {.number = 2});
  EXPECT_TRUE(std::ranges::all_of(next[0], [](float x) { return std::isfinite(x); }));
}

// Invariant 4.
TEST_P(AdacompTest, ZerosGiveZeros) {
  EncodedGroup group = Group();
  const std::vector<std::vector<float>> zeros(static_cast<std::size_t>(GetParam().members),
                                              std::vector<float>(group.length()));

  EXPECT_THAT(group.Sum(zeros)[0], Each(0));
  group.Settle(true);
  EXPECT_THAT(group.LeftOver(0), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Every, AdacompTest, ::testing::ValuesIn(AdacompCases()),
                         [](const auto& test) {
                           return "Of" + std::to_string(test.param.members) +
                                  (test.param.meeting == Meeting::kTcp ? "Tcp" : "");
                         });

TEST(AdacompBytesTest, AreFewerThanOfDenseValues) {
  EncodedGroup group(
      {.members = 2, .kind = policies::Encoding::kAdacomp, .segments = ConvolutionAndMatrix()});

  group.Sum(NormalBuffers(group, 2, 33));

  EXPECT_LT(group.bytes(0), 8000 * sizeof(float) / 4);
}

}  // namespace
}  // namespace tactus::engine
