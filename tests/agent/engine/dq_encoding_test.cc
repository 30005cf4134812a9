#include "agent/engine/combine/dq_encoding.h"

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

constexpr std::size_t kValues = 2048;  // of a tensor that is one unit

TEST(DqStretchesTest, LongTensorsAreCutAndSmallOnesAreDense) {
  cuda::SegmentTable segments{{.name = "bias", .length = 5000, .shape = {5000}},
                              {.name = "none", .length = 0, .shape = {0, 7}},
                              {.name = "small", .length = 1023, .shape = {31, 33}},
                              {.name = "matrix", .length = 9000, .shape = {90, 100}}};
  cuda::AssignOffsets(segments);

  const std::vector<DqStretch> stretches = DqStretchesOf(segments);

  ASSERT_EQ(stretches.size(), 6u);
  EXPECT_TRUE(stretches[0].dense && stretches[1].dense && stretches[2].dense);
  EXPECT_EQ(stretches[1].place.length, 5000 - kDqUnitLength);
  EXPECT_FALSE(stretches[3].dense || stretches[4].dense || stretches[5].dense);
  EXPECT_EQ(stretches[5].place.offset, segments[3].offset + 2 * kDqUnitLength);
  EXPECT_EQ(stretches[5].place.length, 9000 - 2 * kDqUnitLength);
}

cuda::SegmentTable Matrices(std::size_t count, std::size_t length = kValues) {
  cuda::SegmentTable segments;
  for (std::size_t i = 0; i < count; ++i) {
    segments.push_back({.name = "m" + std::to_string(i),
                        .length = length,
                        .shape = {2, static_cast<std::int64_t>(length / 2)}});
  }
  return segments;
}

EncodedGroup DqGroup(int members, cuda::SegmentTable segments, double bits = 4,
                     std::uint64_t seed = 1) {
  return EncodedGroup({.members = members,
                       .kind = policies::Encoding::kDq,
                       .segments = std::move(segments),
                       .options = {.seed = seed, .dq = {.first_bits = bits}}});
}

// Without the lanes.
float LargestOf(const std::vector<std::vector<float>>& buffers) {
  float largest = 0;
  for (const std::vector<float>& buffer : buffers) {
    for (std::size_t i = 0; i + EncodedGroup::kLanes < buffer.size(); ++i) {
      largest = std::max(largest, std::abs(buffer[i]));
    }
  }
  return largest;
}

struct DqCase {
  int members = 2;
  unsigned bits = 4;
  Meeting meeting = Meeting::kInProcess;
};

std::vector<DqCase> DqCases() {
  std::vector<DqCase> cases;
  for (int members = 1; members <= 17; ++members) {
    for (const unsigned bits : {2u, 4u, 8u}) cases.push_back({members, bits});
  }
  for (const int members : {2, 3, 5}) cases.push_back({members, 4, Meeting::kTcp});
  return cases;
}

class DqTest : public ::testing::TestWithParam<DqCase> {
 protected:
  EncodedGroup Group(cuda::SegmentTable segments, std::size_t pieces = 1) const {
    return EncodedGroup({.members = GetParam().members,
                         .kind = policies::Encoding::kDq,
                         .segments = std::move(segments),
                         .options = {.dq = {.first_bits = static_cast<double>(GetParam().bits)}},
                         .meeting = GetParam().meeting,
                         .pieces = pieces});
  }
  bool exact() const {
    return DqSumBits(GetParam().bits, static_cast<unsigned>(GetParam().members)) != 0;
  }
};

// Invariants 2, 3, 6. A single unit has the first bits.
TEST_P(DqTest, SumsAreWithinTheSpacingAndTheSameOnAll) {
  EncodedGroup group = Group(Matrices(1));
  const auto buffers = NormalBuffers(group, GetParam().members, 11);
  const std::vector<float> dense = DenseSum(buffers);

  const auto sums = group.Sum(buffers);

  EXPECT_TRUE(AllAlike(sums));
  if (GetParam().members == 1) {
    EXPECT_EQ(sums[0], dense);
    return;
  }
  const float spacing = LargestOf(buffers) / static_cast<float>(DqLevels(GetParam().bits));
  const float of_sum =
      exact() ? 0 : LargestOf({sums[0]}) / static_cast<float>(DqLevels(GetParam().bits));
  const float bound = static_cast<float>(GetParam().members) * spacing + of_sum;
  for (std::size_t i = 0; i < kValues; ++i) {
    EXPECT_LT(std::abs(sums[0][i] - dense[i]), 1.0001f * bound) << i;
    if (!exact()) continue;
    const float levels = sums[0][i] / spacing;
    EXPECT_NEAR(levels, std::round(levels), 1e-4f) << i;
  }
}

TEST_P(DqTest, LanesAreThoseOfAnAllReduceToTheBit) {
  EncodedGroup group = Group(Matrices(2), 2);
  const auto buffers = NormalBuffers(group, GetParam().members, 12);
  const std::vector<float> dense = DenseSum(buffers);

  const std::vector<float> sum = group.Sum(buffers)[0];

  EXPECT_TRUE(
      std::equal(sum.end() - EncodedGroup::kLanes, sum.end(), dense.end() - EncodedGroup::kLanes));
}

TEST_P(DqTest, SmallTensorsAreSummedExactly) {
  EncodedGroup group = Group({{.name = "matrix", .length = 5000, .shape = {50, 100}},
                              {.name = "bias", .length = 5000, .shape = {5000}},
                              {.name = "small", .length = 30, .shape = {5, 6}},
                              {.name = "none", .length = 0, .shape = {0, 1}}});
  const auto buffers = NormalBuffers(group, GetParam().members, 13);
  const std::vector<float> dense = DenseSum(buffers);

  const auto sums = group.Sum(buffers);

  EXPECT_TRUE(AllAlike(sums));
  const std::size_t begin = group.segments()[1].offset;
  EXPECT_TRUE(std::equal(sums[0].begin() + static_cast<std::ptrdiff_t>(begin), sums[0].end(),
                         dense.begin() + static_cast<std::ptrdiff_t>(begin)));
}

// Invariant 4.
TEST_P(DqTest, ZerosGiveZerosAndOneValueIsExact) {
  EncodedGroup group = Group(Matrices(2));
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(GetParam().members),
                                          std::vector<float>(group.length()));
  for (auto& buffer : buffers) std::fill_n(buffer.begin() + kValues, kValues, -0.3f);
  const std::vector<float> dense = DenseSum(buffers);

  for (const std::uint64_t round : {0, 1}) {
    const auto sums = group.Sum(buffers, {.number = round});

    EXPECT_TRUE(AllAlike(sums));
    EXPECT_THAT(std::vector(sums[0].begin(), sums[0].begin() + kValues), Each(0));
    for (std::size_t i = kValues; i < 2 * kValues; ++i) {
      EXPECT_NEAR(sums[0][i], dense[i], 2e-6f * std::abs(dense[i]));
    }
  }
}

TEST_P(DqTest, WhatIsNotFiniteSpoilsItsPieceOnAllAndNoOther) {
  if (GetParam().members == 1) return;
  EncodedGroup group = Group(Matrices(2), 2);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto buffers = NormalBuffers(group, GetParam().members, 14);
    buffers.back()[17] = bad;

    const auto spoilt = group.Sum(buffers, {.number = 1});
    buffers.back()[17] = 1;
    const auto sums = group.Sum(buffers, {.number = 2});

    EXPECT_TRUE(AllAlike(spoilt));
    EXPECT_TRUE(std::isnan(spoilt[0][0]));
    EXPECT_TRUE(std::isfinite(spoilt[0][kValues]));
    EXPECT_TRUE(AllAlike(sums));
    EXPECT_TRUE(std::ranges::all_of(sums[0], [](float x) { return std::isfinite(x); }));
  }
}

std::string DqCaseName(const ::testing::TestParamInfo<DqCase>& test) {
  return "Of" + std::to_string(test.param.members) + "Bits" + std::to_string(test.param.bits) +
         (test.param.meeting == Meeting::kTcp ? "Tcp" : "");
}
INSTANTIATE_TEST_SUITE_P(Every, DqTest, ::testing::ValuesIn(DqCases()), DqCaseName);

// Invariant 1, where sums are exact and where they are quantised anew. By Hoeffding's inequality a
// mean of 1,000 is off by six standard deviations of the widest distribution once in 1e15.
TEST(DqPropertyTest, SumsAreRightOnAverage) {
  constexpr int kSeeds = 1000;
  constexpr int kMembers = 3;
  for (const unsigned bits : {3u, 8u}) {
    std::vector<double> mean(1024);
    std::vector<std::vector<float>> buffers;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      EncodedGroup group =
          DqGroup(kMembers, Matrices(1, 1024), bits, static_cast<std::uint64_t>(seed));
      if (buffers.empty()) buffers = NormalBuffers(group, kMembers, 15);
      const std::vector<float> sum = group.Sum(buffers)[0];
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += sum[i] / kSeeds;
    }

    const std::vector<float> dense = DenseSum(buffers);
    const double levels = DqLevels(bits);
    const double spacing = LargestOf(buffers) / levels;
    const double of_sum =
        DqSumBits(bits, kMembers) != 0 ? 0 : kMembers * LargestOf(buffers) / levels;
    const double deviation = std::sqrt((kMembers * spacing * spacing + of_sum * of_sum) / 4);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      EXPECT_NEAR(mean[i], dense[i], 6 * deviation / std::sqrt(kSeeds)) << i;
    }
  }
}

// Values that let each unit have the first bits, in any company.
std::vector<std::vector<float>> UniformBuffers(const EncodedGroup& group, int members) {
  auto buffers = NormalBuffers(group, members, 16);
  for (std::vector<float>& buffer : buffers) {
    for (float& value : buffer) value = std::clamp(value, -1.0f, 1.0f);
  }
  return buffers;
}

TEST(DqDrawsTest, DependNeitherOnPiecesNorOnWhoSums) {
  const auto sum_of = [](std::size_t pieces, Meeting meeting) {
    EncodedGroup group({.members = 3,
                        .kind = policies::Encoding::kDq,
                        .segments = Matrices(4),
                        .meeting = meeting,
                        .pieces = pieces});
    return group.Sum(UniformBuffers(group, 3), {.number = 5})[0];
  };

  const std::vector<float> whole = sum_of(1, Meeting::kInProcess);

  EXPECT_EQ(sum_of(2, Meeting::kInProcess), whole);
  EXPECT_EQ(sum_of(4, Meeting::kInProcess), whole);
  EXPECT_EQ(sum_of(4, Meeting::kTcp), whole);
}

// As groups over other transports have other buckets.
TEST(DqDrawsTest, DependNotOnPiecesThatAnotherGroupHad) {
  EncodedGroup cut_anew = DqGroup(3, Matrices(4));
  EncodedGroup whole = DqGroup(3, Matrices(4));
  const auto buffers = NormalBuffers(whole, 3, 15);
  cut_anew.CutInto(2);
  for (const std::uint64_t round : {0, 1}) {  // after which the spacing is calibrated
    cut_anew.Sum(buffers, {.number = round});
    whole.Sum(buffers, {.number = round});
  }

  cut_anew.CutInto(1);
  EXPECT_EQ(cut_anew.Sum(buffers, {.number = 2}), whole.Sum(buffers, {.number = 2}));
  cut_anew.CutInto(3);
  EXPECT_EQ(cut_anew.Sum(buffers, {.number = 3}), whole.Sum(buffers, {.number = 3}));
}

TEST(DqDrawsTest, AreThoseOfTheRoundAndOfTheSeed) {
  const auto sum_of = [](std::uint64_t seed, std::uint64_t round) {
    EncodedGroup group = DqGroup(3, Matrices(1), 4, seed);
    return group.Sum(UniformBuffers(group, 3), {.number = round})[0];
  };

  EXPECT_EQ(sum_of(1, 5), sum_of(1, 5));
  EXPECT_NE(sum_of(1, 5), sum_of(1, 6));
  EXPECT_NE(sum_of(1, 5), sum_of(2, 5));
}

// What rounds of one group take after the first. The values are the same throughout.
class DqRoundsTest : public ::testing::Test {
 protected:
  DqRoundsTest() { BytesOf({.number = 0}); }

  std::uint64_t BytesOf(const EncodedRound& round, float scale = 1) {
    std::vector<std::vector<float>> scaled = buffers_;
    for (std::vector<float>& buffer : scaled) {
      for (float& value : buffer) value *= scale;
    }
    sums_ = group_.Sum(scaled, round);
    EXPECT_TRUE(AllAlike(sums_));
    return group_.bytes(0);
  }

  EncodedGroup group_ = DqGroup(2, Matrices(8, 10'000));
  std::vector<std::vector<float>> buffers_ = NormalBuffers(group_, 2, 17);
  std::vector<std::vector<float>> sums_;
};

TEST_F(DqRoundsTest, GoOnAsTheFirstWhileNothingChanges) {
  const std::uint64_t first = group_.bytes(0);

  // Four bits to the owners, five from them.
  EXPECT_NEAR(static_cast<double>(first), 80'000 * 4.5 / 8, 500);
  EXPECT_EQ(BytesOf({.number = 1}), first);
  EXPECT_EQ(BytesOf({.number = 2}), first);
}

TEST_F(DqRoundsTest, TakeMoreBitsTowardsTheEnd) {
  const std::uint64_t first = BytesOf({.number = 1});

  const std::uint64_t middle = BytesOf({.number = 2, .progress = 0.5});
  const std::uint64_t last = BytesOf({.number = 3, .progress = 1});

  EXPECT_GT(middle, first);
  EXPECT_NEAR(static_cast<double>(last - first), 80'000 * 3.0 / 8, 100);  // eight times finer
}

TEST_F(DqRoundsTest, TakeFewerBitsForSmallerValues) {
  const std::uint64_t first = BytesOf({.number = 1});

  EXPECT_LT(BytesOf({.number = 2}, 0.25f), first);
}

// Who takes over another's state knows no spacing: then nobody does, or codes would not fit.
TEST_F(DqRoundsTest, BeginAnewTogetherWhereOneTakesOverAState) {
  const std::uint64_t first = group_.bytes(0);
  ASSERT_LT(BytesOf({.number = 1}, 0.25f), first) << "by the spacing of the round before";

  group_.encodings(0).Restore({});
  group_.encodings(1).BeginAnew();

  EXPECT_EQ(BytesOf({.number = 2}, 0.25f), first);
  EXPECT_EQ(group_.bytes(1), first);
}

TEST_F(DqRoundsTest, TakeNoMoreForALargerBatch) {
  const std::uint64_t first = BytesOf({.number = 1});

  EXPECT_EQ(BytesOf({.number = 2, .samples = 4}, 4), first);
}

TEST_F(DqRoundsTest, SendDenseWhatWouldNeedTooManyBits) {
  BytesOf({.number = 1}, 1024);

  std::vector<std::vector<float>> scaled = buffers_;
  for (std::vector<float>& buffer : scaled) {
    for (float& value : buffer) value *= 1024;
  }
  EXPECT_EQ(sums_[0], DenseSum(scaled));
  EXPECT_GE(group_.bytes(0), buffers_[0].size() * sizeof(float));
}

TEST_F(DqRoundsTest, BeginAnewWhenSomethingElseTravels) {
  const std::uint64_t first = BytesOf({.number = 1});

  EXPECT_EQ(BytesOf({.number = 2, .changes = true}, 1e-3f), first);
  EXPECT_EQ(BytesOf({.number = 3, .changes = true}, 1e-3f), first);
}

}  // namespace
}  // namespace tactus::engine
