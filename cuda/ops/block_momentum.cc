#include "cuda/ops/block_momentum.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/block_momentum_element.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

TACTUS_VECTOR_CLONES void DeltaLoop(const float* now, const float* start, float* delta,
                                    std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) delta[i] = now[i] - start[i];
}

TACTUS_VECTOR_CLONES void PlainLoop(const BlockMomentumFactors& factors,
                                    const BlockMomentumBuffers& buffers) {
  const BlockMomentumFactors f = factors;
  const float* __restrict start = buffers.start.data();
  const float* __restrict delta = buffers.delta.data();
  float* __restrict parameters = buffers.parameters.data();
  const std::size_t n = buffers.parameters.size();
  for (std::size_t i = 0; i < n; ++i) parameters[i] = PlainElement(f, start[i], delta[i]);
}

TACTUS_VECTOR_CLONES void MomentumLoop(const BlockMomentumFactors& factors,
                                       const BlockMomentumBuffers& buffers) {
  const BlockMomentumFactors f = factors;
  const float* __restrict start = buffers.start.data();
  const float* __restrict delta = buffers.delta.data();
  float* __restrict momentum = buffers.momentum.data();
  float* __restrict parameters = buffers.parameters.data();
  const std::size_t n = buffers.parameters.size();
  for (std::size_t i = 0; i < n; ++i) {
    parameters[i] = MomentumElement(f, start[i], delta[i], momentum[i]);
  }
}

}  // namespace

void ParameterDelta(std::span<const float> now, std::span<const float> start,
                    std::span<float> delta) {
  TACTUS_CHECK(now.size() == delta.size() && start.size() == delta.size());
  DeltaLoop(now.data(), start.data(), delta.data(), delta.size());
}

void BlockMomentum(const BlockMomentumStep& asked, const BlockMomentumBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.start.size() == length && buffers.delta.size() == length);
  if (LostBehind(asked)) return;
  BlockMomentumStep step = asked;
  if (!Through(step)) {
    std::ranges::copy(buffers.start, buffers.parameters.begin());
    return;
  }
  const BlockMomentumFactors factors = FactorsOf(step);
  if (factors.plain) return PlainLoop(factors, buffers);
  TACTUS_CHECK(buffers.momentum.size() == length);
  MomentumLoop(factors, buffers);
}

}  // namespace tactus::cuda::host
