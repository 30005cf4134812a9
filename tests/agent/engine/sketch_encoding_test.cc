#include "agent/engine/combine/sketch_encoding.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using ::testing::Each;

cuda::SegmentTable Matrices() {
  return {{.name = "long", .length = 70'000, .shape = {7, 10'000}},
          {.name = "bias", .length = 10, .shape = {10}},
          {.name = "matrix", .length = 6000, .shape = {60, 100}},
          {.name = "none", .length = 0, .shape = {0, 3}},
          {.name = "small", .length = 30, .shape = {5, 6}},
          {.name = "one", .length = 1, .shape = {1, 1}}};
}

TEST(SketchPartsTest, LongTensorsAreCutEvenlyAndSmallOnesAreDense) {
  cuda::SegmentTable segments = Matrices();
  cuda::AssignOffsets(segments);

  const std::vector<SketchPart> parts = SketchPartsOf(segments, {});

  ASSERT_EQ(parts.size(), 9u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(parts[i].place.offset, i * 14'000);
    EXPECT_EQ(parts[i].place.length, 14'000u);
    EXPECT_EQ(parts[i].applied, 140u);
    EXPECT_EQ(parts[i].candidates, 560u);
    EXPECT_EQ(parts[i].columns, 560u);
    EXPECT_EQ(parts[i].offered, 560u);
  }
  EXPECT_EQ(parts[6].applied, 60u);
  for (const std::size_t dense : {5, 7, 8}) EXPECT_EQ(parts[dense].columns, 0u) << dense;
}

TEST(SketchPartsTest, ColumnsAreOfALongStretch) {
  const cuda::SegmentTable segments = {
      {.name = "a", .length = kSketchLength, .shape = {128, 128}},
      {.name = "b", .offset = kSketchLength, .length = kSketchLength / 8, .shape = {2, 1024}}};

  const std::vector<SketchPart> parts = SketchPartsOf(segments, {.columns = 640});

  EXPECT_EQ(parts[0].columns, 640u);
  EXPECT_EQ(parts[1].columns, 80u);
}

// Section 1c of the specification, step 1.
TEST(SketchPartsTest, WhatWouldBeNoShorterIsDense) {
  const cuda::SegmentTable segments = {{.name = "a", .length = 10'000, .shape = {100, 100}}};

  EXPECT_GT(SketchPartsOf(segments, {.share = 0.0624})[0].columns, 0u);  // (3 * 4 + 4) k = 9984
  EXPECT_EQ(SketchPartsOf(segments, {.share = 0.0625})[0].columns, 0u);  // 10'000
}

struct SketchCase {
  int members = 2;
  Meeting meeting = Meeting::kInProcess;
};

std::vector<SketchCase> SketchCases() {
  std::vector<SketchCase> cases;
  for (int members = 1; members <= 17; ++members) cases.push_back({members});
  for (const int members : {2, 3, 5}) cases.push_back({members, Meeting::kTcp});
  return cases;
}

class SketchTest : public ::testing::TestWithParam<SketchCase> {
 protected:
  EncodedGroup Group(std::size_t pieces = 2) const {
    return EncodedGroup({.members = GetParam().members,
                         .kind = policies::Encoding::kSketch,
                         .segments = Matrices(),
                         .meeting = GetParam().meeting,
                         .pieces = pieces});
  }
};

// Of all members: what was there before a round, what is left behind it, and what was applied.
struct SketchRound {
  std::vector<std::vector<float>> gathered;  // by rank
  std::vector<std::vector<float>> left;      // likewise
  std::vector<float> dense;                  // the sum of what was gathered
  std::vector<float> applied;
};

// Returns how many elements of the part were applied that are not 0 by themselves.
std::size_t ExpectExactOrLeft(const SketchRound& round, const SketchPart& part) {
  std::size_t applied = 0;
  for (std::size_t i = part.place.offset; i < part.place.offset + part.place.length; ++i) {
    // A sum of 0 may have been applied or not.
    if (round.dense[i] == 0) continue;
    const bool all = part.columns == 0 || round.applied[i] != 0;
    if (all) ++applied;
    EXPECT_EQ(round.applied[i], all ? round.dense[i] : 0) << i;
    for (std::size_t rank = 0; rank < round.left.size(); ++rank) {
      EXPECT_EQ(round.left[rank][i], all ? 0 : round.gathered[rank][i]) << i;
    }
  }
  return applied;
}

// Section 1g, invariants 3 to 5: what is applied is what all have put in, exactly, and of no more
// values than it may be; all else is left over.
TEST_P(SketchTest, WhatIsAppliedIsExactAndAllElseIsLeft) {
  if (GetParam().members == 1) return;
  EncodedGroup group = Group();
  const int members = GetParam().members;
  SketchRound round;
  round.left.assign(static_cast<std::size_t>(members), std::vector<float>(group.length()));
  for (std::uint64_t number = 0; number < 3; ++number) {
    const auto buffers = WholeBuffers(group, members, number);
    const auto sums = group.Sum(buffers, {.number = number});
    group.Settle(true);
    round.gathered = buffers;
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      std::ranges::transform(round.left[rank], buffers[rank], round.gathered[rank].begin(),
                             std::plus());
      round.left[rank] = group.LeftOver(static_cast<int>(rank));
    }
    round.dense = DenseSum(round.gathered);
    round.applied = sums[0];

    ASSERT_TRUE(AllAlike(sums));
    for (const SketchPart& part : SketchPartsOf(group.segments(), {})) {
      const std::size_t applied = ExpectExactOrLeft(round, part);
      if (part.columns == 0) continue;
      EXPECT_LE(applied, part.applied);
      EXPECT_GT(applied, part.applied / 2);
    }
  }
}

TEST_P(SketchTest, AloneItIsWhatWasPutIn) {
  if (GetParam().members > 1) return;
  EncodedGroup group = Group();
  const auto buffers = NormalBuffers(group, 1, 30);

  EXPECT_EQ(group.Sum(buffers), buffers);
  EXPECT_EQ(group.bytes(0), group.length() * sizeof(float));
}

TEST_P(SketchTest, SmallTensorsAndLanesAreThoseOfAnAllReduceToTheBit) {
  EncodedGroup group = Group();
  const auto buffers = NormalBuffers(group, GetParam().members, 31);
  const std::vector<float> dense = DenseSum(buffers);

  const std::vector<float> sum = group.Sum(buffers)[0];

  const auto same = [&](std::size_t begin, std::size_t length) {
    const auto at = static_cast<std::ptrdiff_t>(begin);
    return std::equal(sum.begin() + at, sum.begin() + at + static_cast<std::ptrdiff_t>(length),
                      dense.begin() + at);
  };
  for (const std::size_t segment : {1, 4, 5}) {
    EXPECT_TRUE(same(group.segments()[segment].offset, group.segments()[segment].length));
  }
  EXPECT_TRUE(same(sum.size() - EncodedGroup::kLanes, EncodedGroup::kLanes));
}

// Every part has its own stretches, so neither the cut into pieces nor what is in them matters.
TEST_P(SketchTest, PiecesDoNotMatter) {
  EncodedGroup whole = Group(1);
  EncodedGroup cut = Group(3);
  const auto buffers = NormalBuffers(whole, GetParam().members, 34);

  EXPECT_EQ(cut.Sum(buffers)[0], whole.Sum(buffers)[0]);
}

TEST_P(SketchTest, ARoundThatIsNotFiniteSpoilsItsPieceOnAllAndLeavesTheResidualAlone) {
  if (GetParam().members == 1) return;
  EncodedGroup group = Group();
  const auto buffers = NormalBuffers(group, GetParam().members, 32);
  group.Sum(buffers, {.number = 0});
  group.Settle(true);
  const std::vector<float> left = group.LeftOver(0);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto spoilt = buffers;
    spoilt.back()[3] = bad;

    const auto sums = group.Sum(spoilt, {.number = 1});
    group.Settle(false);

    EXPECT_TRUE(AllAlike(sums));
    EXPECT_TRUE(std::isnan(sums[0][0]));
    EXPECT_EQ(group.LeftOver(0), left);
  }
  const auto next = group.Sum(buffers, {.number = 2});
  EXPECT_TRUE(std::ranges::all_of(next[0], [](float x) { return std::isfinite(x); }));
}

TEST_P(SketchTest, ZerosGiveZerosAndOneValueIsExact) {
  EncodedGroup group = Group();
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(GetParam().members),
                                          std::vector<float>(group.length()));
  EXPECT_THAT(group.Sum(buffers)[0], Each(0));
  group.Settle(true);

  buffers.back()[40'000] = -0.3f;
  const std::vector<float> sum = group.Sum(buffers, {.number = 1})[0];
  group.Settle(true);

  EXPECT_EQ(sum, buffers.back());
  EXPECT_THAT(group.LeftOver(0), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Every, SketchTest, ::testing::ValuesIn(SketchCases()),
                         [](const auto& test) {
                           return "Of" + std::to_string(test.param.members) +
                                  (test.param.meeting == Meeting::kTcp ? "Tcp" : "");
                         });

EncodedGroup GroupWith(const SketchOptions& options, std::size_t length = 10'000,
                       std::uint64_t seed = 1) {
  return EncodedGroup({.members = 2,
                       .kind = policies::Encoding::kSketch,
                       .segments = {{.name = "matrix",
                                     .length = length,
                                     .shape = {2, static_cast<std::int64_t>(length / 2)}}},
                       .options = {.seed = seed, .sketch = options}});
}

TEST(SketchBytesTest, AreOfTheTablesAndTheCandidates) {
  EncodedGroup group = GroupWith({.share = 0.001, .candidates = 3, .rows = 7});

  group.Sum(NormalBuffers(group, 2, 35));

  EXPECT_EQ(group.bytes(0), (7 * 30 + 30 + EncodedGroup::kLanes) * sizeof(float));
}

// Invariant 6, without momentum.
TEST(SketchBytesTest, AllValuesTravelDense) {
  EncodedGroup group = GroupWith({.share = 1});
  const auto buffers = NormalBuffers(group, 2, 36);

  EXPECT_EQ(group.Sum(buffers)[0], DenseSum(buffers));
  group.Settle(true);
  EXPECT_THAT(group.LeftOver(0), Each(0));
  EXPECT_EQ(group.bytes(0), group.length() * sizeof(float));
}

// Few large values among many small ones are found, all of them.
TEST(SketchFindsTest, WhatStandsOut) {
  // Five rows of four columns a candidate.
  EncodedGroup group = GroupWith({.share = 0.002, .rows = 5, .columns = 524}, 65536);
  auto buffers = NormalBuffers(group, 2, 37);
  for (std::size_t i = 0; i < 131; ++i) buffers[i % 2][i * 500 + 7] = i % 3 == 0 ? 60.0f : -50.0f;

  const std::vector<float> sum = group.Sum(buffers)[0];

  for (std::size_t i = 0; i < 131; ++i) EXPECT_NE(sum[i * 500 + 7], 0) << i;
}

// A row's noise is 8 where it has all values, of which 12 do not stand out.
TEST(SketchFindsTest, WhatIsSmallEverywhereDoesNotCoverIt) {
  const auto found = [](std::uint32_t offered) {
    EncodedGroup group =
        GroupWith({.share = 0.002, .rows = 5, .columns = 524, .offered = offered}, 65536);
    auto buffers = NormalBuffers(group, 2, 37);
    for (std::size_t i = 0; i < 131; ++i) buffers[i % 2][i * 500 + 7] = 12;
    const std::vector<float> sum = group.Sum(buffers)[0];
    std::size_t count = 0;
    for (std::size_t i = 0; i < 131; ++i) count += sum[i * 500 + 7] != 0 ? 1 : 0;
    return count;
  };

  EXPECT_EQ(found(SketchOptions().offered), 131u);
  EXPECT_LT(found(0), 100u);
}

TEST(SketchSeedTest, IsOfTheJobAndTheRound) {
  const auto sum_of = [](std::uint64_t seed, std::uint64_t round) {
    EncodedGroup group = GroupWith({}, 10'000, seed);
    return group.Sum(NormalBuffers(group, 2, 38), {.number = round})[0];
  };

  EXPECT_EQ(sum_of(1, 5), sum_of(1, 5));
  EXPECT_NE(sum_of(1, 5), sum_of(1, 6));
  EXPECT_NE(sum_of(1, 5), sum_of(2, 5));
}

// S5 over 1,000 rounds, each of which has a seed of its own: what came out until then, and what is
// left, are what was put in.
TEST(SketchPropertyTest, NothingIsLost) {
  EncodedGroup group = GroupWith({}, 1024);
  std::vector<float> owed(group.length());
  for (std::uint64_t round = 0; round < 1000; ++round) {
    const auto buffers = WholeBuffers(group, 2, round);
    const std::vector<float> dense = DenseSum(buffers);
    const std::vector<float> sum = group.Sum(buffers, {.number = round})[0];
    group.Settle(true);

    const std::vector<float> left[] = {group.LeftOver(0), group.LeftOver(1)};
    for (std::size_t i = 0; i < left[0].size(); ++i) {
      owed[i] += dense[i] - sum[i];
      ASSERT_EQ(left[0][i] + left[1][i], owed[i]) << round;
    }
  }
}

// A quadratic, from 1 to its minimum at 0 in every dimension. A round applies 24 of 2,048, so that
// what an update is made of is up to 85 rounds old: the rate is for that.
TEST(SketchTrainingTest, ComesToTheMinimumAndAllMembersWithIt) {
  constexpr std::size_t kDimensions = 2048;
  GroupRun run{
      .options = {.train_samples = 1000,
                  .optimizer = SgdOptions{.learning_rate = 0.004},
                  .stop = {.rounds = 500},
                  .encoding = {.sketch = {.share = 0.0118}}},
      .plan = {.version = 1, .encoding = policies::Encoding::kSketch, .batch_sizes = {1, 2}},
      .task = Task{.segments = {{.name = "w", .length = kDimensions, .shape = {32, 64}}},
                   .start = std::vector<float>(kDimensions, 1),
                   .add_gradient = [](int, std::uint64_t index, std::span<const float> parameters,
                                      std::span<float> gradients) {
                     double loss = 0;
                     for (std::size_t i = 0; i < kDimensions; ++i) {
                       const float scale = i % 7 == 0 ? 4 : (index + i) % 2 == 0 ? 1.5f : 0.5f;
                       gradients[i] += scale * parameters[i];
                       loss += 0.5 * scale * parameters[i] * parameters[i];
                     }
                     return loss / kDimensions;
                   }}};

  const std::vector<MemberRun> members = Train(run);

  EXPECT_EQ(members[0].parameters, members[1].parameters);
  EXPECT_LT(members[0].reports.back().loss_mean_global,
            1e-2 * members[0].reports.front().loss_mean_global);
  EXPECT_NE(members[0].state->residuals.at("sketch"), members[1].state->residuals.at("sketch"));
}

}  // namespace
}  // namespace tactus::engine
