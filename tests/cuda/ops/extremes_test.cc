#include "cuda/ops/extremes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Found {
  std::vector<float> max_abs{};
  std::vector<float> nonfinite{};
};

Found ExtremesOf(std::span<const float> buffer, const SegmentTable& segments) {
  Found found{std::vector<float>(segments.size(), -1), std::vector<float>(segments.size(), -1)};
  host::ExtremesPerSegment(buffer, segments, {found.max_abs, found.nonfinite});
  return found;
}

Found Naive(std::span<const float> buffer, const SegmentTable& segments) {
  Found found;
  for (const Segment& segment : segments) {
    float max_abs = 0;
    float nonfinite = 0;
    for (const float x : buffer.subspan(segment.offset, segment.length)) {
      if (!std::isfinite(x)) {
        ++nonfinite;
      } else if (std::abs(x) > max_abs) {
        max_abs = std::abs(x);
      }
    }
    found.max_abs.push_back(max_abs);
    found.nonfinite.push_back(nonfinite);
  }
  return found;
}

class ExtremesTest : public testing::TestWithParam<std::size_t> {};

TEST_P(ExtremesTest, AgreeWithTheirDefinition) {
  const std::size_t length = GetParam();
  Rng rng(length);
  Guarded buffer = RandomBuffer(rng, length, 100);
  const SegmentTable whole = {{.offset = 0, .length = length}};

  const Found finite = ExtremesOf(buffer.span(), whole);
  EXPECT_EQ(finite.max_abs, Naive(buffer.span(), whole).max_abs);
  EXPECT_EQ(finite.nonfinite[0], 0);

  if (length == 0) return;
  buffer[length - 1] = kNan;
  buffer[length / 2] = -kInfinity;
  const Found spoilt = ExtremesOf(buffer.span(), whole);
  EXPECT_EQ(spoilt.max_abs, Naive(buffer.span(), whole).max_abs);
  EXPECT_EQ(spoilt.nonfinite[0], length == 1 ? 1 : 2);
}

TEST_P(ExtremesTest, SeeTheLargestWhereverItIs) {
  const std::size_t length = GetParam();
  const SegmentTable whole = {{.offset = 0, .length = length}};
  for (const std::size_t at : {std::size_t{0}, length / 3, length - 1}) {
    if (at >= length) continue;
    Guarded buffer(length);
    buffer[at] = -3;

    EXPECT_EQ(ExtremesOf(buffer.span(), whole).max_abs[0], 3) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, ExtremesTest, testing::ValuesIn(kLengths));

TEST(ExtremesTest, AreThoseOfEachSegmentAlone) {
  std::vector<float> buffer = {1, -2, kNan, 9, 9, 9,     9, 9, 9,         9,         9, 9,
                               9, 9,  9,    9, 0, -0.0f, 9, 9, 9,         9,         9, 9,
                               9, 9,  9,    9, 9, 9,     9, 9, kInfinity, -kInfinity};
  const SegmentTable segments = {{.offset = 0, .length = 3},
                                 {.offset = 16, .length = 2},
                                 {.offset = 32, .length = 0},
                                 {.offset = 32, .length = 2}};

  const Found found = ExtremesOf(buffer, segments);

  EXPECT_EQ(found.max_abs, (std::vector<float>{2, 0, 0, 0}));
  EXPECT_EQ(found.nonfinite, (std::vector<float>{1, 0, 0, 2}));
}

TEST(ExtremesTest, CountOverAllOfALongSegment) {
  std::vector<float> buffer((std::size_t{1} << 21) + 3, 1);
  buffer.front() = kNan;
  buffer[std::size_t{1} << 20] = kInfinity;
  buffer.back() = kNan;

  EXPECT_EQ(ExtremesOf(buffer, {{.offset = 0, .length = buffer.size()}}).nonfinite[0], 3);
}

TEST(ExtremesTest, AreExactAtTheEdgesOfFloat32) {
  const std::vector<float> buffer = {std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::max()};

  const Found found = ExtremesOf(buffer, {{.offset = 0, .length = 1}, {.offset = 1, .length = 1}});

  EXPECT_EQ(found.max_abs, buffer);
}

TEST(ExtremesPropertyTest, AgreeOnRandomTablesWithRandomFaults) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    SegmentTable segments(rng.Below(5));
    for (Segment& segment : segments) segment.length = rng.Below(70);
    AssignOffsets(segments);
    Guarded buffer = RandomBuffer(rng, FlatLength(segments));
    for (float& x : buffer.span()) {
      const std::uint64_t fault = rng.Below(20);
      if (fault == 0)
        x = std::bit_cast<float>(0x7f800001u + static_cast<std::uint32_t>(rng.Below(9)));
      if (fault == 1) x = -kInfinity;
    }
    const Found expected = Naive(buffer.span(), segments);

    const Found found = ExtremesOf(buffer.span(), segments);

    ASSERT_EQ(found.max_abs, expected.max_abs);
    ASSERT_EQ(found.nonfinite, expected.nonfinite);
  }
}

TEST(ExtremesDeathTest, RefuseWhatTheirContractExcludes) {
  std::vector<float> buffer(4);
  std::vector<float> one(1);
  const SegmentTable inside = {{.offset = 0, .length = 4}};
  const SegmentTable outside = {{.offset = 1, .length = 4}};

  EXPECT_DEATH(host::ExtremesPerSegment(buffer, outside, {one, one}), "check failed");
  EXPECT_DEATH(host::ExtremesPerSegment(buffer, inside, {one, {}}), "check failed");
  EXPECT_DEATH(host::ExtremesPerSegment(buffer, inside, {{}, one}), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
