#include "agent/collective/rank_sum.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::collective {

void SumInRankOrder(std::span<const float* const> sources, std::span<float> out) {
  TACTUS_CHECK(!sources.empty());
  constexpr std::size_t kBlock = 1024;  // stays in the first-level cache
  std::array<float, kBlock> sums;
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - begin);
    std::copy_n(sources.front() + begin, count, sums.begin());
    for (const float* const source : sources.subspan(1)) {
      cuda::host::Axpy(1.0f, {source + begin, count}, {sums.data(), count});
    }
    std::copy_n(sums.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace tactus::collective
