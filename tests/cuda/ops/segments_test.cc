#include "cuda/ops/segments.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus::cuda {
namespace {

TEST(SegmentsTest, LieOneBehindTheOtherOnCacheLines) {
  SegmentTable segments = {{.length = 1}, {.length = 16}, {.length = 17}, {.length = 5}};

  AssignOffsets(segments);

  EXPECT_EQ(segments[0].offset, 0u);
  EXPECT_EQ(segments[1].offset, 16u);
  EXPECT_EQ(segments[2].offset, 32u);
  EXPECT_EQ(segments[3].offset, 64u);
  EXPECT_EQ(FlatLength(segments), 80u);
}

TEST(SegmentsTest, NoSegmentsNeedNoBuffer) {
  SegmentTable none;

  AssignOffsets(none);

  EXPECT_EQ(FlatLength(none), 0u);
}

TEST(SegmentsTest, AnEmptySegmentTakesNoRoom) {
  SegmentTable segments = {{.length = 3}, {.length = 0}, {.length = 4}};

  AssignOffsets(segments);

  EXPECT_EQ(segments[1].offset, 16u);
  EXPECT_EQ(segments[2].offset, 16u);
  EXPECT_EQ(FlatLength(segments), 32u);
}

TEST(SegmentsPropertyTest, NeverOverlapAndWasteLessThanALineEach) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    SegmentTable segments(rng.Below(20));
    std::size_t elements = 0;
    for (Segment& segment : segments) elements += segment.length = rng.Below(1000);

    AssignOffsets(segments);

    std::size_t end = 0;
    for (const Segment& segment : segments) {
      ASSERT_EQ(segment.offset % kSegmentAlignment, 0u) << "seed " << seed;
      ASSERT_GE(segment.offset, end) << "seed " << seed;
      end = segment.offset + segment.length;
    }
    ASSERT_GE(FlatLength(segments), end) << "seed " << seed;
    ASSERT_EQ(FlatLength(segments) % kSegmentAlignment, 0u) << "seed " << seed;
    ASSERT_LE(FlatLength(segments), elements + segments.size() * (kSegmentAlignment - 1));
  }
}

}  // namespace
}  // namespace tactus::cuda
