#include "cuda/ops/packed_layout.h"

#include "base/check.h"

namespace tactus::cuda {

std::vector<std::uint64_t> FirstWords(const SegmentTable& segments,
                                      std::span<const std::uint8_t> bits) {
  TACTUS_CHECK(bits.size() == segments.size());
  std::vector<std::uint64_t> first = {0};
  first.reserve(segments.size() + 1);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    first.push_back(first.back() + PackedWords(segments[i].length, bits[i]));
  }
  return first;
}

std::vector<std::uint64_t> FirstWords(const SegmentTable& segments, unsigned bits) {
  TACTUS_CHECK(bits <= 32);
  return FirstWords(segments,
                    std::vector<std::uint8_t>(segments.size(), static_cast<std::uint8_t>(bits)));
}

}  // namespace tactus::cuda
