#include "cuda/ops/combination.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

// Elements summed at a time: their sums stay in the first cache.
constexpr std::size_t kBlock = 1024;

TACTUS_VECTOR_CLONES void First(double weight, const float* x, double* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] = weight * static_cast<double>(x[i]);
}

TACTUS_VECTOR_CLONES void Add(double weight, const float* x, double* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += weight * static_cast<double>(x[i]);
}

TACTUS_VECTOR_CLONES void Round(const double* sums, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(sums[i]);
}

}  // namespace

void WeightedSum(std::span<const Weighted> parts, std::span<float> out) {
  TACTUS_CHECK(!parts.empty() && parts.size() <= kCombinedMax);
  for (const Weighted& part : parts) TACTUS_CHECK(part.buffer.size() == out.size());
  double sums[kBlock];
  for (std::size_t i = 0; i < out.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, out.size() - i);
    First(parts.front().weight, parts.front().buffer.data() + i, sums, length);
    for (const Weighted& part : parts.subspan(1)) {
      Add(part.weight, part.buffer.data() + i, sums, length);
    }
    Round(sums, out.data() + i, length);
  }
}

}  // namespace tactus::cuda::host
