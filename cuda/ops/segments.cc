#include "cuda/ops/segments.h"

#include <algorithm>

namespace tactus::cuda {
namespace {

std::size_t RoundUp(std::size_t length) {
  return (length + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

}  // namespace

std::size_t FlatLength(const SegmentTable& segments) {
  std::size_t end = 0;
  for (const Segment& segment : segments) end = std::max(end, segment.offset + segment.length);
  return RoundUp(end);
}

void AssignOffsets(SegmentTable& segments) {
  std::size_t offset = 0;
  for (Segment& segment : segments) {
    segment.offset = offset;
    offset = RoundUp(offset + segment.length);
  }
}

}  // namespace tactus::cuda
