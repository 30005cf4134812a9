#include "cuda/ops/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::cuda {
namespace {

using testing::ElementsAre;

SegmentTable TableOf(std::initializer_list<std::size_t> lengths) {
  SegmentTable segments;
  for (const std::size_t length : lengths) segments.push_back({.length = length});
  AssignOffsets(segments);
  return segments;
}

TEST(PackedLayoutTest, ThirtyTwoElementsFillAsManyWordsAsBits) {
  for (unsigned bits = 0; bits <= 8; ++bits) EXPECT_EQ(PackedWords(32, bits), bits);
}

TEST(PackedLayoutTest, APartOfAWordIsAWord) {
  EXPECT_EQ(PackedWords(0, 8), 0u);
  EXPECT_EQ(PackedWords(1, 1), 1u);
  EXPECT_EQ(PackedWords(33, 1), 2u);
  EXPECT_EQ(PackedWords(8, 4), 1u);
  EXPECT_EQ(PackedWords(9, 4), 2u);
  EXPECT_EQ(PackedWords(31, 3), 3u);
  EXPECT_EQ(PackedWords((std::size_t{1} << 31) + 5, 2), (std::size_t{1} << 27) + 1);
}

TEST(PackedLayoutTest, SegmentsStartAtWordsOfTheirOwn) {
  const SegmentTable segments = TableOf({33, 0, 1, 64});

  EXPECT_THAT(FirstWords(segments, 1), ElementsAre(0, 2, 2, 3, 5));
}

TEST(PackedLayoutTest, ASegmentOfNoBitsHasNoWords) {
  const SegmentTable segments = TableOf({40, 40, 40});
  const std::vector<std::uint8_t> bits = {4, 0, 3};

  EXPECT_THAT(FirstWords(segments, bits), ElementsAre(0, 5, 5, 9));
}

TEST(PackedLayoutTest, NoSegmentsAreNoWords) { EXPECT_THAT(FirstWords({}, 1), ElementsAre(0)); }

TEST(PackedLayoutDeathTest, RefusesBitsOfAnotherTable) {
  const std::vector<std::uint8_t> bits = {4};

  EXPECT_DEATH(FirstWords(TableOf({1, 2}), bits), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
