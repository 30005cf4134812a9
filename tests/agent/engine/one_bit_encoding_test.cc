#include "agent/engine/combine/one_bit_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"

namespace tactus::engine {
namespace {

using ::testing::Each;
using ::testing::Pointwise;

constexpr std::size_t kOwn = 0;  // residuals
constexpr std::size_t kSums = 1;

MATCHER_P(Nearly, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

// A group of members of equal batches, with what their optimizers share. Members' values are their
// gradients' sums, of a sample each.
struct OneBitGroup {
  OneBitGroup(int count, cuda::SegmentTable table, Meeting meeting = Meeting::kInProcess,
              std::size_t pieces = 1)
      : members(count),
        group({.members = count,
               .kind = policies::Encoding::kOneBit,
               .segments = std::move(table),
               .meeting = meeting,
               .pieces = pieces}),
        length(group.length() - EncodedGroup::kLanes),
        first(length),
        second(length, 1),
        scales(group.segments().size(), 1) {}

  SharedMomentum Shared() const {
    return {.first = first,
            .second = second,
            .scales = scales,
            .beta1 = beta1,
            .since = 1,
            .samples = static_cast<double>(members),
            .own_samples = 1};
  }
  std::vector<std::vector<float>> Sum(const std::vector<std::vector<float>>& buffers) {
    auto sums = group.Sum(buffers, {}, Shared());
    group.Settle(true);
    return sums;
  }
  // What all members still owe, in units of the sum of momenta.
  std::vector<double> Owed() {
    std::vector<double> owed(length);
    for (int rank = 0; rank < members; ++rank) {
      for (const std::size_t which : {kOwn, kSums}) {
        const std::vector<float> left = group.LeftOver(rank, which);
        for (std::size_t i = 0; i < length; ++i) owed[i] += static_cast<double>(left[i]);
      }
    }
    return owed;
  }
  // The momentum of which a sum of gradients tells.
  double MomentumOf(const std::vector<float>& sum, std::size_t i) const {
    return beta1 * static_cast<double>(first[i]) +
           (1 - beta1) * static_cast<double>(sum[i]) / members;
  }

  const int members;
  EncodedGroup group;
  const std::size_t length;
  double beta1 = 0;
  std::vector<float> first;
  std::vector<float> second;
  std::vector<double> scales;
};

// ---- The specification's vectors, in which members' parts are not divided by their number

constexpr float kNone = 0;
const std::vector<float> kFirstMember = {1, -1, 2, 0, 3, -2, 0, 1, -4, 1, 0, 0, 2, -1, 1, -1};
const std::vector<float> kSecondMember = {1, 1, -2, 2, 1, -2, 2, 0, -2, -1, 0, 2, 0, 1, 1, 1};

class OneBitVectorsTest : public ::testing::Test {
 protected:
  // Without the factor 2 of a sum.
  std::vector<float> Means() {
    const std::vector<float> sum = pair_.Sum({Buffer(kFirstMember), Buffer(kSecondMember)})[0];
    std::vector<float> means;
    for (std::size_t i = 0; i < 16; ++i) means.push_back(sum[i] / 2);
    return means;
  }
  static std::vector<float> Buffer(std::vector<float> values) {
    values.resize(16 + EncodedGroup::kLanes, kNone);
    return values;
  }
  static std::vector<float> Signs(float first, float second, const std::string& signs) {
    std::vector<float> values;
    for (std::size_t i = 0; i < signs.size(); ++i) {
      values.push_back((signs[i] == '+' ? 1.0f : -1.0f) * (i < 8 ? first : second));
    }
    return values;
  }

  OneBitGroup pair_{2, {{.name = "a", .length = 16, .shape = {4, 4}}}};
};

TEST_F(OneBitVectorsTest, One) {
  EXPECT_THAT(Means(), Pointwise(Nearly(1e-6f), Signs(1.3224762f, 1.2084739f,
                                                      "+-+++-++"
                                                      "-++++-+-")));
  const std::vector<float> own = pair_.group.LeftOver(0, kOwn);
  const std::vector<float> expected = {-.6583124f,  .6583124f,  .3416876f,
                                       -1.6583124f, 1.3416876f, -.3416876f};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(2 * own[i], expected[i], 1e-6);
  const std::vector<float> sums = pair_.group.LeftOver(0, kSums);
  EXPECT_THAT(
      (std::vector<float>(sums.begin(), sums.begin() + 8)),
      Pointwise(Nearly(1e-6f), std::vector<float>{.2026505f, 1.1892905f, -1.1892905f, .2026505f,
                                                  .2026505f, -.2026505f, .2026505f, .2026505f}));
  EXPECT_THAT((std::vector<float>(sums.begin() + 8, sums.end())), Each(0));  // another's
}

TEST_F(OneBitVectorsTest, TwoGoesOnFromTheErrorsOfOne) {
  Means();

  EXPECT_THAT(Means(), Pointwise(Nearly(1e-6f), Signs(1.4589875f, 1.4299054f,
                                                      "++--+--+"
                                                      "---+++++")));
}

TEST_F(OneBitVectorsTest, SixShowsThatZerosOscillateAndWhatAMaskIsFor) {
  OneBitGroup pair(2, {{.name = "a", .length = 4, .shape = {2, 2}}});
  std::vector<float> buffer(pair.group.length());
  buffer[2] = 1;
  buffer[3] = -1;

  pair.Sum({buffer, buffer});

  const std::vector<float> own = pair.group.LeftOver(1, kOwn);
  const std::vector<float> expected = {-.7071068f, -.7071068f, .2928932f, -.2928932f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(2 * own[i], expected[i], 1e-6);

  OneBitGroup masked(2, {{.name = "a", .length = 4, .shape = {2, 2}}});
  masked.second[0] = masked.second[1] = 0;
  const std::vector<float> sum = masked.Sum({buffer, buffer})[0];
  EXPECT_THAT((std::vector<float>(sum.begin(), sum.begin() + 4)),
              ::testing::ElementsAre(0, 0, 2, -2));
  EXPECT_THAT(masked.Owed(), Each(0));
}

// ---- Groups of any size

cuda::SegmentTable Tensors() {
  return {{.name = "matrix", .length = 700, .shape = {7, 100}},
          {.name = "bias", .length = 10, .shape = {10}},
          {.name = "silent", .length = 33, .shape = {33}},
          {.name = "none", .length = 0, .shape = {0, 3}},
          {.name = "vector", .length = 129, .shape = {129}}};
}
constexpr std::size_t kSilent = 2;  // had no momentum when the second moment was frozen

struct OneBitCase {
  int members = 2;
  Meeting meeting = Meeting::kInProcess;
};

std::vector<OneBitCase> OneBitCases() {
  std::vector<OneBitCase> cases;
  for (int members = 2; members <= 17; ++members) cases.push_back({members});
  for (const int members : {2, 3, 5}) cases.push_back({members, Meeting::kTcp});
  return cases;
}

class OneBitTest : public ::testing::TestWithParam<OneBitCase> {
 protected:
  OneBitTest() : group_(GetParam().members, Tensors(), GetParam().meeting, 2) {
    group_.beta1 = 0.9;
    Rng rng(5);
    for (const cuda::Segment& segment : segments()) {
      for (std::size_t i = 0; i < segment.length; ++i) {
        group_.first[segment.offset + i] = static_cast<float>(rng.Normal());
        group_.second[segment.offset + i] = rng.Below(10) == 0 ? 0.0f : 1.0f;
      }
    }
    group_.scales = {1, 0.25, 0, 0, 3};
  }

  const cuda::SegmentTable& segments() const { return group_.group.segments(); }
  std::vector<std::vector<float>> Buffers(std::uint64_t seed) {
    return NormalBuffers(group_.group, GetParam().members, seed);
  }
  // Calls each(segment's index, i) of all that travels, i in the flat buffer.
  template <typename Each>
  void ForEach(const Each& each) {
    for (std::size_t s = 0; s < segments().size(); ++s) {
      for (std::size_t i = 0; i < segments()[s].length; ++i) {
        if (group_.second[segments()[s].offset + i] != 0) each(s, segments()[s].offset + i);
      }
    }
  }

  OneBitGroup group_;
};

// Invariants 1 and 2: what was put in is what came out and what is left, and all have the same.
TEST_P(OneBitTest, NothingIsLostAndAllHaveTheSame) {
  std::vector<double> gathered(group_.length);
  for (std::uint64_t round = 0; round < 6; ++round) {
    const auto buffers = Buffers(round);
    const auto sums = group_.Sum(buffers);
    EXPECT_TRUE(AllAlike(sums));
    const std::vector<float> dense = DenseSum(buffers);
    ForEach([&](std::size_t s, std::size_t i) {
      gathered[i] +=
          group_.scales[s] * (group_.MomentumOf(dense, i) - group_.MomentumOf(sums[0], i));
    });
  }

  // Of some 50 sums of numbers below 2^5 or so, each rounded to 2^-24 of itself.
  const std::vector<double> owed = group_.Owed();
  ForEach([&](std::size_t, std::size_t i) { ASSERT_NEAR(gathered[i], owed[i], 2e-4) << i; });
}

// Invariant 3.
TEST_P(OneBitTest, MomentaOfASliceAreOfOneSizeButForTheirTensorsScale) {
  const std::vector<float> sum = group_.Sum(Buffers(7))[0];

  std::set<std::int64_t> sizes;
  ForEach([&](std::size_t s, std::size_t i) {
    if (s == kSilent) return;
    sizes.insert(std::llround(group_.scales[s] * std::abs(group_.MomentumOf(sum, i)) * 1e4));
  });
  // Two pieces; one of a size may round to two neighbours.
  EXPECT_LE(sizes.size(), static_cast<std::size_t>(2 * 2 * GetParam().members));
  EXPECT_GE(sizes.size(), 2u);
}

TEST_P(OneBitTest, WhatNeverHadAGradientHasNoMomentum) {
  const std::vector<float> sum = group_.Sum(Buffers(8))[0];

  std::size_t masked = 0;
  for (const cuda::Segment& segment : segments()) {
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      if (group_.second[i] != 0) continue;
      ++masked;
      EXPECT_NEAR(group_.MomentumOf(sum, i), 0, 1e-6);
    }
  }
  EXPECT_GT(masked, 20u);
  for (int rank = 0; rank < GetParam().members; ++rank) {
    const std::vector<float> own = group_.group.LeftOver(rank, kOwn);
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(own[i] == 0 || group_.second[i] != 0) << i;
    }
  }
}

TEST_P(OneBitTest, TensorsOfNoMomentumAndLanesAreSummedAsTheyAre) {
  const auto buffers = Buffers(9);
  const std::vector<float> dense = DenseSum(buffers);

  const std::vector<float> sum = group_.Sum(buffers)[0];

  // As a momentum, and back: some roundings of it, times N / (1 - beta1).
  const double tolerance = 20 * 0x1p-24 * 10 * 10 * GetParam().members;
  ForEach([&](std::size_t s, std::size_t i) {
    if (s != kSilent) return;
    EXPECT_NEAR(sum[i], dense[i], tolerance) << i;
  });
  EXPECT_TRUE(
      std::equal(sum.end() - EncodedGroup::kLanes, sum.end(), dense.end() - EncodedGroup::kLanes));
}

TEST_P(OneBitTest, ARoundThatIsNotAppliedLeavesErrorsAlone) {
  const auto buffers = Buffers(10);
  group_.Sum(buffers);
  const std::vector<float> own = group_.group.LeftOver(0, kOwn);
  const std::vector<float> sums = group_.group.LeftOver(0, kSums);
  auto spoilt = buffers;
  const auto place =
      static_cast<std::size_t>(std::ranges::find(group_.second, 1.0f) - group_.second.begin());
  spoilt.back()[place] = std::numeric_limits<float>::quiet_NaN();

  const auto spoilt_sums = group_.group.Sum(spoilt, {}, group_.Shared());
  group_.group.Settle(false);

  EXPECT_TRUE(std::isnan(spoilt_sums[0][place]));
  EXPECT_EQ(group_.group.LeftOver(0, kOwn), own);
  EXPECT_EQ(group_.group.LeftOver(0, kSums), sums);
  EXPECT_THAT(group_.Sum(buffers)[0],
              Each(::testing::Truly([](float x) { return std::isfinite(x); })));
}

TEST_P(OneBitTest, ZerosGiveZeros) {
  std::ranges::fill(group_.first, 0.0f);
  const std::vector<std::vector<float>> zeros(static_cast<std::size_t>(GetParam().members),
                                              std::vector<float>(group_.group.length()));

  EXPECT_THAT(group_.Sum(zeros)[0], Each(0));
  EXPECT_THAT(group_.Owed(), Each(0));
}

// As members of another group, or of other pieces, have them.
TEST_P(OneBitTest, WhatIsOwedOfSlicesOfOthersIsSentOn) {
  std::ranges::fill(group_.first, 0.0f);
  const std::vector<std::vector<float>> zeros(static_cast<std::size_t>(GetParam().members),
                                              std::vector<float>(group_.group.length()));
  group_.Sum(zeros);
  std::vector<float> owed(group_.length);
  ForEach([&](std::size_t s, std::size_t i) {
    if (s != kSilent) owed[i] = static_cast<float>(i % 7) - 3;
  });
  for (int rank = 0; rank < GetParam().members; ++rank) group_.group.SetLeftOver(rank, kSums, owed);
  const std::vector<double> before = group_.Owed();

  const std::vector<float> sum = group_.Sum(zeros)[0];

  const std::vector<double> after = group_.Owed();
  ForEach([&](std::size_t s, std::size_t i) {
    if (s == kSilent) return;
    ASSERT_NEAR(before[i], after[i] + group_.scales[s] * group_.MomentumOf(sum, i), 1e-4);
  });
  std::vector<int> owners(group_.length);
  for (int rank = 0; rank < GetParam().members; ++rank) {
    const std::vector<float> sums = group_.group.LeftOver(rank, kSums);
    for (std::size_t i = 0; i < sums.size(); ++i) owners[i] += sums[i] != 0 ? 1 : 0;
  }
  EXPECT_LE(*std::ranges::max_element(owners), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, OneBitTest, ::testing::ValuesIn(OneBitCases()),
                         [](const auto& test) {
                           return "Of" + std::to_string(test.param.members) +
                                  (test.param.meeting == Meeting::kTcp ? "Tcp" : "");
                         });

// ---- Pieces

TEST(OneBitPiecesTest, WhatIsOwedOutlivesPiecesThatAreCutAnew) {
  OneBitGroup pair(2, Tensors(), Meeting::kInProcess, 4);
  std::vector<double> gathered(pair.length);
  for (const std::size_t pieces : {4, 1, 2, 3}) {
    pair.group.CutInto(pieces);
    const auto buffers = NormalBuffers(pair.group, 2, pieces);
    const auto sums = pair.Sum(buffers);
    EXPECT_TRUE(AllAlike(sums));
    const std::vector<float> dense = DenseSum(buffers);
    for (std::size_t i = 0; i < pair.length; ++i) {
      gathered[i] += pair.MomentumOf(dense, i) - pair.MomentumOf(sums[0], i);
    }
  }

  const std::vector<double> owed = pair.Owed();
  for (std::size_t i = 0; i < pair.length; ++i) ASSERT_NEAR(gathered[i], owed[i], 1e-4) << i;
}

// ---- Phases

TEST(OneBitPhasesTest, GradientsTravelDenseBeforeAndErrorsAreGoneAfterwards) {
  OneBitGroup pair(2, Tensors());
  const auto buffers = NormalBuffers(pair.group, 2, 11);

  EXPECT_EQ(pair.group.Sum(buffers)[0], DenseSum(buffers));
  EXPECT_EQ(pair.group.bytes(0), buffers[0].size() * sizeof(float));
  pair.Sum(buffers);
  EXPECT_LT(pair.group.bytes(0), buffers[0].size() * sizeof(float) / 16);
  EXPECT_NE(pair.group.LeftOver(0), std::vector<float>(pair.length));
  EXPECT_EQ(pair.group.Sum(buffers)[0], DenseSum(buffers));
  EXPECT_THAT(pair.group.LeftOver(0), Each(0));
}

TEST(OneBitPhasesTest, AloneNothingIsEncoded) {
  OneBitGroup alone(1, Tensors());
  const auto buffers = NormalBuffers(alone.group, 1, 12);

  EXPECT_EQ(alone.Sum(buffers)[0], buffers[0]);
  EXPECT_THAT(alone.Owed(), Each(0));
}

// Members' parts of the momentum are as large as their parts of the samples.
TEST(OneBitPhasesTest, TheSumOfMembersMomentaIsThatOfTheGroup) {
  OneBitGroup pair(2, {{.name = "a", .length = 32, .shape = {32}}});
  pair.beta1 = 0.5;
  std::ranges::fill(pair.first, 2.0f);
  std::vector<std::vector<float>> buffers(2, std::vector<float>(pair.group.length()));
  std::fill_n(buffers[0].begin(), 32, 8.0f);

  // All of one size, so that a sign says all of it: 0.5 * 2 + 0.5 * 8 / 2 = 3.
  const std::vector<float> sum = pair.Sum(buffers)[0];

  EXPECT_THAT((std::vector<float>(sum.begin(), sum.begin() + 32)), Each(8));
  EXPECT_THAT(pair.Owed(), Each(0));
}

// ---- Properties

TEST(OneBitPropertyTest, WhatIsNotSentIsKeptWhateverIsSent) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    OneBitGroup pair(2, {{.name = "a", .length = 1 + rng.Below(70), .shape = {}}});
    pair.scales[0] = std::exp(rng.Normal());
    const float size = std::exp(static_cast<float>(3 * rng.Normal()));
    std::vector<double> gathered(pair.length);
    for (std::uint64_t round = 0; round < 4; ++round) {
      const auto buffers = NormalBuffers(pair.group, 2, 4 * seed + round, size);
      const std::vector<float> sum = pair.Sum(buffers)[0];
      const std::vector<float> dense = DenseSum(buffers);
      for (std::size_t i = 0; i < pair.length; ++i) {
        gathered[i] += pair.scales[0] * (pair.MomentumOf(dense, i) - pair.MomentumOf(sum, i));
      }
    }

    const std::vector<double> owed = pair.Owed();
    const double tolerance = 1e-4 * pair.scales[0] * static_cast<double>(size);
    for (std::size_t i = 0; i < pair.length; ++i) ASSERT_NEAR(gathered[i], owed[i], tolerance) << i;
  }
}

}  // namespace
}  // namespace tactus::engine
