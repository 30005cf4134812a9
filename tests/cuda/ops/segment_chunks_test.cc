#include "cuda/ops/segment_chunks.h"

#include <gtest/gtest.h>

#include <tuple>

namespace tactus::cuda {

bool operator==(const SegmentChunk& a, const SegmentChunk& b) {
  return std::tie(a.offset, a.length, a.segment) == std::tie(b.offset, b.length, b.segment);
}

namespace {

using Chunks = std::vector<SegmentChunk>;
using First = std::vector<std::uint32_t>;

TEST(SegmentChunksTest, ASegmentIsCutIntoWholeChunksAndARest) {
  const ChunkTable table = ChunksOf({{.offset = 16, .length = 2 * kChunkLength + 5}});

  EXPECT_EQ(table.chunks, (Chunks{{16, kChunkLength, 0},
                                  {16 + kChunkLength, kChunkLength, 0},
                                  {16 + 2 * kChunkLength, 5, 0}}));
  EXPECT_EQ(table.first, (First{0, 3}));
}

TEST(SegmentChunksTest, AWholeNumberOfChunksHasNoRest) {
  EXPECT_EQ(ChunksOf({{.offset = 0, .length = kChunkLength}}).chunks.size(), 1u);
  EXPECT_EQ(ChunksOf({{.offset = 0, .length = kChunkLength + 1}}).chunks.size(), 2u);
}

TEST(SegmentChunksTest, AnEmptySegmentHasNoChunksAndAnEmptyTableNoSegments) {
  const ChunkTable table = ChunksOf({{.length = 1}, {.length = 0}, {.offset = 16, .length = 2}});

  EXPECT_EQ(table.chunks, (Chunks{{0, 1, 0}, {16, 2, 2}}));
  EXPECT_EQ(table.first, (First{0, 1, 1, 2}));
  EXPECT_EQ(ChunksOf(SegmentTable{}).first, First{0});
}

TEST(SegmentChunksTest, PartsKeepTheirSegmentsAndTheOthersHaveNone) {
  const SegmentPart parts[] = {{.segment = 1, .offset = 3, .length = kChunkLength + 1},
                               {.segment = 3, .offset = 9000, .length = 4}};

  const ChunkTable table = ChunksOf(parts, 5);

  EXPECT_EQ(table.chunks, (Chunks{{3, kChunkLength, 1}, {3 + kChunkLength, 1, 1}, {9000, 4, 3}}));
  EXPECT_EQ(table.first, (First{0, 0, 2, 2, 3, 3}));
}

TEST(SegmentChunksTest, PartsOfASegmentStandTogetherInTheirOrder) {
  const SegmentPart parts[] = {{.segment = 1, .offset = 5, .length = 1},
                               {.segment = 0, .offset = 0, .length = 2},
                               {.segment = 1, .offset = 3, .length = 2}};

  const ChunkTable table = ChunksOf(parts, 2);

  EXPECT_EQ(table.chunks, (Chunks{{0, 2, 0}, {5, 1, 1}, {3, 2, 1}}));
  EXPECT_EQ(table.first, (First{0, 1, 3}));
}

TEST(SegmentChunksDeathTest, RefusesAPartBeyondTheTable) {
  const SegmentPart beyond[] = {{.segment = 2, .length = 1}};

  EXPECT_DEATH(ChunksOf(beyond, 2), "check failed");
}

TEST(SegmentChunksTest, ABufferWithoutATableHasAsManyChunksAsItNeeds) {
  EXPECT_EQ(ChunksIn(0), 0u);
  EXPECT_EQ(ChunksIn(1), 1u);
  EXPECT_EQ(ChunksIn(kChunkLength), 1u);
  EXPECT_EQ(ChunksIn(kChunkLength + 1), 2u);
}

}  // namespace
}  // namespace tactus::cuda
