// The table of segments: which stretch of the flat buffer is which parameter.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tactus::cuda {

// One parameter tensor inside the flat buffer. Segments do not overlap and stand in rising offset
// order; the gaps between them are padding, always zero.
struct Segment {
  std::string name{};      // as in the model, e.g. "blocks.0.qkv.weight"
  std::size_t offset = 0;  // [elements] from the buffer's start, a multiple of kSegmentAlignment
  std::size_t length = 0;  // [elements]
  std::vector<std::int64_t> shape{};  // row-major; product = length
  std::uint32_t slice = 0;            // member of a fused sweep; 0 until sweeps exist
};

using SegmentTable = std::vector<Segment>;

// Offsets are multiples of 16 floats, a cache line, so that every segment may be read with aligned
// vectors.
inline constexpr std::size_t kSegmentAlignment = 16;

// Length of a buffer that holds all segments, rounded up to kSegmentAlignment. [elements]
std::size_t FlatLength(const SegmentTable& segments);

// Lays out the segments one behind the other in the order given: sets every offset.
void AssignOffsets(SegmentTable& segments);

// A range of the flat buffer.
struct FlatRange {
  std::size_t offset = 0;  // [elements] from the buffer's start
  std::size_t length = 0;  // [elements]
};

// What a range of the flat buffer holds of one segment.
struct SegmentPart {
  std::size_t segment = 0;  // index in the table
  std::size_t offset = 0;   // [elements] from the range's start
  std::size_t length = 0;   // [elements] >= 1
};

// The parts of which a range consists, in rising order; padding belongs to none. An empty range and
// empty segments have no part. The range may reach beyond the last segment.
std::vector<SegmentPart> PartsOf(FlatRange range, const SegmentTable& segments);

}  // namespace tactus::cuda
