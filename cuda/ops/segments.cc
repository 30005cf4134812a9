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

std::vector<SegmentPart> PartsOf(FlatRange range, const SegmentTable& segments) {
  const std::size_t range_end = range.offset + range.length;
  std::vector<SegmentPart> parts;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t begin = std::max(segments[i].offset, range.offset);
    const std::size_t end = std::min(segments[i].offset + segments[i].length, range_end);
    if (begin >= end) continue;
    parts.push_back({.segment = i, .offset = begin - range.offset, .length = end - begin});
  }
  return parts;
}

}  // namespace tactus::cuda
