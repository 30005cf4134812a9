#include "cuda/ops/extremes.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/extremes_element.h"

namespace tactus::cuda::host {
namespace {

// n <= 2^32, so that the count fits.
TACTUS_VECTOR_CLONES Seen SeenOfBlock(const float* x, std::size_t n) {
  Seen seen;
  for (std::size_t i = 0; i < n; ++i) See(x[i], seen);
  return seen;
}

}  // namespace

void ExtremesPerSegment(std::span<const float> buffer, const SegmentTable& segments,
                        const Extremes& extremes) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  TACTUS_CHECK(extremes.max_abs.size() == segments.size());
  TACTUS_CHECK(extremes.nonfinite.size() == segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const auto [offset, length] = std::pair(segments[s].offset, segments[s].length);
    TACTUS_CHECK(offset <= buffer.size() && length <= buffer.size() - offset);
    std::uint32_t max_abs_bits = 0;
    std::uint64_t nonfinite = 0;
    for (std::size_t i = 0; i < length; i += kBlock) {
      const Seen seen = SeenOfBlock(buffer.data() + offset + i, std::min(kBlock, length - i));
      max_abs_bits = std::max(max_abs_bits, seen.max_abs_bits);
      nonfinite += seen.nonfinite;
    }
    extremes.max_abs[s] = std::bit_cast<float>(max_abs_bits);
    extremes.nonfinite[s] = static_cast<float>(nonfinite);
  }
}

}  // namespace tactus::cuda::host
