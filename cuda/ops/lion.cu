#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/lion.h"
#include "cuda/ops/lion_element.h"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

struct LionBody {
  LionFactors factors;
  const float* gradients;
  float* parameters;
  float* momentum;
  const double* gate;

  __device__ bool Enter() { return Through(gate, factors.gradient_scale); }
  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> gradient = Load<width>(gradients + i);
    Pack<width> parameter = Load<width>(parameters + i);
    Pack<width> kept = Load<width>(momentum + i);
    for (int k = 0; k < width; ++k) {
      LionElement(factors, gradient.at[k], parameter.at[k], kept.at[k]);
    }
    Store(parameters + i, parameter);
    Store(momentum + i, kept);
  }
};

}  // namespace

void Lion(Stream stream, const LionStep& step, std::span<const float> gradients,
          std::span<float> parameters, std::span<float> momentum) {
  const std::size_t n = parameters.size();
  TACTUS_CHECK(gradients.size() == n);
  TACTUS_CHECK(momentum.size() == n);
  const LionBody body{.factors = FactorsOf(step),
                      .gradients = gradients.data(),
                      .parameters = parameters.data(),
                      .momentum = momentum.data(),
                      .gate = step.gate};
  Sweep(stream, CutOf(n, {body.gradients, body.parameters, body.momentum}), body);
}

}  // namespace tactus::cuda::kernels
