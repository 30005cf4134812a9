#include <cstddef>

#include "base/check.h"
#include "cuda/ops/adam.h"
#include "cuda/ops/adam_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

struct AdamBody {
  AdamFactors factors;
  const float* gradients;
  float* parameters;
  float* first_moment;
  float* second_moment;
  const double* gate;

  __device__ bool Enter() { return Through(gate, factors.gradient_scale); }
  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> gradient = Load<width>(gradients + i);
    Pack<width> parameter = Load<width>(parameters + i);
    Pack<width> first = Load<width>(first_moment + i);
    Pack<width> second = Load<width>(second_moment + i);
    for (int k = 0; k < width; ++k) {
      AdamElement(factors, gradient.at[k], {parameter.at[k], first.at[k], second.at[k]});
    }
    Store(parameters + i, parameter);
    Store(first_moment + i, first);
    Store(second_moment + i, second);
  }
};

}  // namespace

void Adam(Stream stream, const AdamStep& step, const AdamBuffers& buffers) {
  const std::size_t n = buffers.parameters.size();
  TACTUS_CHECK(buffers.gradients.size() == n);
  TACTUS_CHECK(buffers.first_moment.size() == n);
  TACTUS_CHECK(buffers.second_moment.size() == n);
  const AdamBody body{.factors = FactorsOf(step),
                      .gradients = buffers.gradients.data(),
                      .parameters = buffers.parameters.data(),
                      .first_moment = buffers.first_moment.data(),
                      .second_moment = buffers.second_moment.data(),
                      .gate = step.gate};
  const Cut cut =
      CutOf(n, {body.gradients, body.parameters, body.first_moment, body.second_moment});
  Sweep(stream, cut, body);
}

}  // namespace tactus::cuda::kernels
