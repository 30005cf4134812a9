// Segments cut into chunks, so that one launch does a whole buffer however many parameters it
// holds: a thread block works on one chunk, and what the chunks of a segment yield is put together
// in their order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/ops/segments.h"

namespace tactus::cuda {

// Elements of a chunk at most: 32 KiB, few enough that 16 MiB of a buffer already keep every
// multiprocessor busy with several blocks.
inline constexpr std::size_t kChunkLength = 8192;

// Chunks of a buffer of n elements that is cut without a table.
constexpr std::size_t ChunksIn(std::size_t n) {
  return n / kChunkLength + (n % kChunkLength != 0 ? 1 : 0);
}

// A stretch of a segment.
struct SegmentChunk {
  std::size_t offset = 0;     // [elements] from the buffer's start
  std::uint32_t length = 0;   // [elements] 1 to kChunkLength
  std::uint32_t segment = 0;  // index in the table
};

// The chunks of a table, on the host. It depends on the table alone, so that it is made and
// uploaded once.
struct ChunkTable {
  std::vector<SegmentChunk> chunks{};  // in the order of the segments, rising within each
  std::vector<std::uint32_t> first{};  // [segments + 1]: chunks[first[s] .. first[s + 1]) are s's
};

// The chunks of every segment; an empty one has none.
ChunkTable ChunksOf(const SegmentTable& segments);

// The same of parts of a range, whose offsets count from its start. `segments` is the number of
// segments in the table.
ChunkTable ChunksOf(std::span<const SegmentPart> parts, std::size_t segments);

namespace kernels {

// A ChunkTable in device memory.
struct SegmentChunks {
  std::span<const SegmentChunk> chunks{};
  std::span<const std::uint32_t> first{};  // [segments + 1]

  std::size_t segments() const { return first.empty() ? 0 : first.size() - 1; }
};

// Counters that a reduction into so many rows of sums takes: one a row, and one for all of them.
constexpr std::size_t CountersFor(std::size_t rows) { return rows + 1; }

// Device memory for the sums of a reduction. The order of every addition is fixed by the lengths
// alone: the same input gives the same bits on every device, every time.
struct SumsInto {
  std::span<double> sums{};      // the result
  std::span<double> partials{};  // scratch: as many for every chunk as there are sums a segment
  // Scratch, [CountersFor(segments)]: zero at first, and left so behind every reduction. Those of
  // one stream alone: two reductions that run at once must not count at the same place.
  std::span<std::uint32_t> counters{};
};

}  // namespace kernels
}  // namespace tactus::cuda
