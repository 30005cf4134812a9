#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sgd.h"
#include "cuda/ops/sgd_element.h"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

template <SgdKind kind>
struct SgdBody {
  SgdStep step;
  const float* gradients;
  float* parameters;
  float* momentum_buffer;  // not touched when the kind is kPlain

  __device__ bool Enter() { return Through(step.gate, step.gradient_scale); }
  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> gradient = Load<width>(gradients + i);
    Pack<width> parameter = Load<width>(parameters + i);
    Pack<width> momentum{};
    if constexpr (kind != SgdKind::kPlain) momentum = Load<width>(momentum_buffer + i);
    for (int k = 0; k < width; ++k) {
      SgdElement<kind>(step, gradient.at[k], parameter.at[k], momentum.at[k]);
    }
    Store(parameters + i, parameter);
    if constexpr (kind != SgdKind::kPlain) Store(momentum_buffer + i, momentum);
  }
};

}  // namespace

void Sgd(Stream stream, const SgdStep& step, std::span<const float> gradients,
         std::span<float> parameters, std::span<float> momentum_buffer) {
  TACTUS_CHECK(gradients.size() == parameters.size());
  TACTUS_CHECK(!step.nesterov || step.momentum > 0);
  const std::size_t n = parameters.size();
  const float* const g = gradients.data();
  float* const p = parameters.data();
  float* const m = momentum_buffer.data();
  if (step.momentum == 0 && momentum_buffer.empty()) {
    return Sweep(stream, CutOf(n, {g, p}), SgdBody<SgdKind::kPlain>{step, g, p, nullptr});
  }
  TACTUS_CHECK(momentum_buffer.size() == n);
  if (step.nesterov) {
    return Sweep(stream, CutOf(n, {g, p, m}), SgdBody<SgdKind::kNesterov>{step, g, p, m});
  }
  Sweep(stream, CutOf(n, {g, p, m}), SgdBody<SgdKind::kMomentum>{step, g, p, m});
}

}  // namespace tactus::cuda::kernels
