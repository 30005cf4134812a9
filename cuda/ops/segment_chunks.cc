#include "cuda/ops/segment_chunks.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tactus::cuda {
namespace {

void Append(std::size_t segment, std::size_t offset, std::size_t length, ChunkTable& table) {
  for (std::size_t done = 0; done < length; done += kChunkLength) {
    table.chunks.push_back(
        {.offset = offset + done,
         .length = static_cast<std::uint32_t>(std::min(kChunkLength, length - done)),
         .segment = static_cast<std::uint32_t>(segment)});
  }
}

// Marks the end of the chunks so far as the beginning of the next segment's.
void EndSegment(ChunkTable& table) {
  TACTUS_CHECK(table.chunks.size() <= std::numeric_limits<std::uint32_t>::max());
  table.first.push_back(static_cast<std::uint32_t>(table.chunks.size()));
}

}  // namespace

ChunkTable ChunksOf(const SegmentTable& segments) {
  ChunkTable table{.first = {0}};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    Append(i, segments[i].offset, segments[i].length, table);
    EndSegment(table);
  }
  return table;
}

ChunkTable ChunksOf(std::span<const SegmentPart> parts, std::size_t segments) {
  std::vector<SegmentPart> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const SegmentPart& a, const SegmentPart& b) {
    return a.segment < b.segment;
  });
  ChunkTable table{.first = {0}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < segments; ++i) {
    for (; next < sorted.size() && sorted[next].segment == i; ++next) {
      Append(i, sorted[next].offset, sorted[next].length, table);
    }
    EndSegment(table);
  }
  TACTUS_CHECK(next == sorted.size());
  return table;
}

}  // namespace tactus::cuda
