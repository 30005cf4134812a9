// Adasum over parts of segments: how ranges are cut, and that pieces come to the same as the whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "cuda/ops/adasum.h"

namespace tactus::cuda {
namespace {

using Vector = std::vector<float>;

constexpr int kCases = 1000;

// (segment, offset, length) of each part.
std::vector<std::array<std::size_t, 3>> Rows(const std::vector<SegmentPart>& parts) {
  std::vector<std::array<std::size_t, 3>> rows;
  for (const SegmentPart& part : parts) rows.push_back({part.segment, part.offset, part.length});
  return rows;
}

using Parts = std::vector<std::array<std::size_t, 3>>;

TEST(PartsOfTest, ARangeIsCutAtTheSegmentsAndLeavesOutThePadding) {
  SegmentTable segments = {
      {.name = "a", .length = 20}, {.name = "empty"}, {.name = "b", .length = 5}};
  AssignOffsets(segments);  // at 0, 32 and 32

  EXPECT_EQ(Rows(PartsOf({.offset = 0, .length = 48}, segments)), (Parts{{0, 0, 20}, {2, 32, 5}}));
  EXPECT_EQ(Rows(PartsOf({.offset = 19, .length = 14}, segments)), (Parts{{0, 0, 1}, {2, 13, 1}}));
  EXPECT_EQ(Rows(PartsOf({.offset = 3, .length = 2}, segments)), (Parts{{0, 0, 2}}));
  EXPECT_EQ(Rows(PartsOf({.offset = 34, .length = 100}, segments)), (Parts{{2, 0, 3}}));
}

TEST(PartsOfTest, NothingAndPaddingAloneHaveNoParts) {
  SegmentTable segments = {{.name = "a", .length = 20}, {.name = "b", .length = 5}};
  AssignOffsets(segments);

  EXPECT_TRUE(PartsOf({.offset = 10, .length = 0}, segments).empty());
  EXPECT_TRUE(PartsOf({.offset = 20, .length = 12}, segments).empty());
  EXPECT_TRUE(PartsOf({.offset = 1000, .length = 12}, segments).empty());
  EXPECT_TRUE(PartsOf({.offset = 0, .length = 100}, {}).empty());
}

// One level of recursive halving: what every rank holds of both operands, and of which range.
struct Member {
  FlatRange range{};
  Vector a{};
  Vector b{};
  std::vector<double> partials{};  // expected
  Vector out{};                    // expected
};

const SegmentTable kThreeAndTwo = {{.name = "l0", .offset = 0, .length = 3},
                                   {.name = "l1", .offset = 3, .length = 2}};

// Expected numbers have nine digits, and inputs of the second level eight.
constexpr double kPrinted = 1e-7;

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], kPrinted * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

// All members' partial sums come to `totals`, with which every member combines its own range.
void ExpectLevel(const std::vector<Member>& members, const std::vector<double>& totals) {
  std::vector<double> sums(totals.size(), 0.0);
  for (const Member& member : members) {
    std::vector<double> partials(totals.size(), 0.0);
    host::AdasumPartials({.a = member.a, .b = member.b}, PartsOf(member.range, kThreeAndTwo),
                         partials);
    ExpectNear(partials, member.partials);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += partials[i];
  }
  ExpectNear(sums, totals);
  for (const Member& member : members) {
    Vector out = member.a;
    host::AdasumCombine({.a = out, .b = member.b}, PartsOf(member.range, kThreeAndTwo), sums, out);
    ExpectNear({out.begin(), out.end()}, {member.out.begin(), member.out.end()});
  }
}

TEST(AdasumPaperTest, V2LevelsOfRecursiveHalving) {
  ExpectLevel({{.range = {0, 2},
                .a = {1, 2},
                .b = {2, 0},
                .partials = {2, 5, 4, 0, 0, 0},
                .out = {3.23571429f, 2.07142857f}},
               {.range = {2, 3},
                .a = {3, 4, 5},
                .b = {-1, 1, 1},
                .partials = {-3, 9, 1, 9, 41, 2},
                .out = {2.00714286f, 2.31097561f, 3.20121951f}}},
              {-1, 14, 5, 9, 41, 2});
  ExpectLevel({{.range = {0, 2},
                .a = {-1, 1},
                .b = {0.5f, 0.5f},
                .partials = {0, 2, 0.5, 0, 0, 0},
                .out = {-0.5f, 1.5f}},
               {.range = {2, 3},
                .a = {0, 2, -2},
                .b = {1, -1, 3},
                .partials = {0, 0, 1, -8, 8, 10},
                .out = {1, 1.6f, 1.2f}}},
              {0, 2, 1.5, -8, 8, 10});
  ExpectLevel({{.range = {0, 1},
                .a = {3.23571429f},
                .b = {-0.5f},
                .partials = {-1.61785714, 10.4698469, 0.25, 0, 0, 0},
                .out = {2.68439814f}},
               {.range = {2, 1},
                .a = {2.00714286f},
                .b = {1},
                .partials = {2.00714286, 4.02862245, 1, 0, 0, 0},
                .out = {2.32090217f}},
               {.range = {1, 1},
                .a = {2.07142857f},
                .b = {1.5f},
                .partials = {3.10714286, 4.29081633, 2.25, 0, 0, 0},
                .out = {2.62946164f}},
               {.range = {3, 2},
                .a = {2.31097561f, 3.20121951f},
                .b = {1.6f, 1.2f},
                .partials = {0, 0, 0, 7.53902439, 15.5884146, 4},
                .out = {1.84434221f, 2.49626302f}}},
              {3.49642857, 18.7892857, 3.5, 7.53902439, 15.5884146, 4});
}

// Whole numbers up to 1023 in magnitude: sums of their products are exact in any order.
Vector WholeNumbers(Rng& rng, std::size_t length) {
  Vector values(length);
  for (float& value : values) value = static_cast<float>(rng.Below(2047)) - 1023.0f;
  return values;
}

SegmentTable RandomTable(Rng& rng) {
  SegmentTable segments(rng.Below(5) + 1);
  for (Segment& segment : segments) segment.length = rng.Below(60);
  AssignOffsets(segments);
  return segments;
}

// The operator on `segments`, computed piece by piece of the ranges between the `cuts`.
Vector InPieces(const SegmentTable& segments, const AdasumPair& whole,
                const std::vector<std::size_t>& cuts) {
  std::vector<double> sums(segments.size() * kAdasumSumsPerSegment, 0.0);
  Vector out(whole.a.begin(), whole.a.end());
  const auto piece = [&](std::size_t i) {
    return AdasumPair{.a = whole.a.subspan(cuts[i], cuts[i + 1] - cuts[i]),
                      .b = whole.b.subspan(cuts[i], cuts[i + 1] - cuts[i])};
  };
  const auto parts = [&](std::size_t i) {
    return PartsOf({.offset = cuts[i], .length = cuts[i + 1] - cuts[i]}, segments);
  };
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    host::AdasumPartials(piece(i), parts(i), sums);
  }
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    host::AdasumCombine(piece(i), parts(i), sums,
                        std::span(out).subspan(cuts[i], cuts[i + 1] - cuts[i]));
  }
  return out;
}

TEST(AdasumPropertyTest, AnyCutIntoRangesComesToTheSameAsEverySegmentWhole) {
  for (int seed = 0; seed < kCases; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    const SegmentTable segments = RandomTable(rng);
    const std::size_t length = FlatLength(segments);
    const Vector a = WholeNumbers(rng, length);
    const Vector b = WholeNumbers(rng, length);
    std::vector<std::size_t> cuts = {0, length};
    for (std::uint64_t i = rng.Below(6); i > 0; --i) cuts.push_back(rng.Below(length + 1));
    std::sort(cuts.begin(), cuts.end());
    Vector expected = a;  // the padding stays
    for (const Segment& segment : segments) {
      const AdasumPair pair{.a = std::span(a).subspan(segment.offset, segment.length),
                            .b = std::span(b).subspan(segment.offset, segment.length)};
      host::Combine(host::CoefficientsOf(host::PairSums(pair)), pair,
                    std::span(expected).subspan(segment.offset, segment.length));
    }

    const Vector out = InPieces(segments, {.a = a, .b = b}, cuts);

    ASSERT_EQ(out, expected) << "seed " << seed;
  }
}

TEST(AdasumTest, SplittingASegmentChangesTheResult) {
  const Vector a = {1, 2, 3, 4};
  const Vector b = {2, 0, -1, 5};
  const SegmentTable one = {{.name = "l", .offset = 0, .length = 4}};
  const SegmentTable two = {{.name = "l", .offset = 0, .length = 2},
                            {.name = "k", .offset = 2, .length = 2}};

  EXPECT_NE(InPieces(one, {.a = a, .b = b}, {0, 4}), InPieces(two, {.a = a, .b = b}, {0, 4}));
}

TEST(AdasumPartsDeathTest, RefusesPartsBeyondTheRangeAndSegmentsBeyondTheSums) {
  const Vector values(4);
  Vector out(4);
  std::vector<double> sums(3);
  const AdasumPair pair{.a = values, .b = values};
  const SegmentPart too_long[] = {{.segment = 0, .offset = 1, .length = 4}};
  const SegmentPart too_far[] = {{.segment = 0, .offset = 5, .length = 0}};
  const SegmentPart unknown[] = {{.segment = 1, .offset = 0, .length = 4}};

  for (const auto& parts : {too_long, too_far, unknown}) {
    EXPECT_DEATH(host::AdasumPartials(pair, {parts, 1}, sums), "check failed");
    EXPECT_DEATH(host::AdasumCombine(pair, {parts, 1}, sums, out), "check failed");
  }
}

}  // namespace
}  // namespace tactus::cuda
