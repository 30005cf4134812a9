#include "base/check.h"
#include "cuda/ops/combination.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

struct WeightedSumBody {
  double weights[kCombinedMax] = {};
  const float* buffers[kCombinedMax] = {};
  unsigned count = 0;
  float* out = nullptr;

  template <int width>
  __device__ void At(std::size_t i) const {
    double sums[width];
    const Pack<width> first = Load<width>(buffers[0] + i);
    for (int k = 0; k < width; ++k) sums[k] = weights[0] * static_cast<double>(first.at[k]);
#pragma unroll 4  // read ahead, and yet within the registers of eight blocks
    for (unsigned p = 1; p < count; ++p) {
      const Pack<width> next = Load<width>(buffers[p] + i);
      for (int k = 0; k < width; ++k) sums[k] += weights[p] * static_cast<double>(next.at[k]);
    }
    Pack<width> rounded;
    for (int k = 0; k < width; ++k) rounded.at[k] = static_cast<float>(sums[k]);
    Store(out + i, rounded);
  }
};

// Fours only where every buffer lies as `out` does.
Cut CutOfAll(std::span<const Weighted> parts, std::span<float> out) {
  for (const Weighted& part : parts) {
    const Cut cut = CutOf(out.size(), {out.data(), part.buffer.data()});
    if (cut.fours == 0) return cut;
  }
  return CutOf(out.size(), {out.data()});
}

}  // namespace

void WeightedSum(Stream stream, std::span<const Weighted> parts, std::span<float> out) {
  TACTUS_CHECK(!parts.empty() && parts.size() <= kCombinedMax);
  WeightedSumBody body{.count = static_cast<unsigned>(parts.size()), .out = out.data()};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    TACTUS_CHECK(parts[p].buffer.size() == out.size());
    body.weights[p] = parts[p].weight;
    body.buffers[p] = parts[p].buffer.data();
  }
  Sweep(stream, CutOfAll(parts, out), body);
}

}  // namespace tactus::cuda::kernels
