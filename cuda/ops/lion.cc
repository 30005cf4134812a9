#include "cuda/ops/lion.h"

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/lion_element.h"

namespace tactus::cuda {
namespace {

// One stretch of the flat buffers.
struct Stretch {
  const float* gradients;
  float* parameters;
  float* momentum;
  std::size_t length;
};

float Rounded(double value) { return static_cast<float>(value); }

TACTUS_VECTOR_CLONES void LionLoop(const LionFactors& factors, const Stretch& stretch) {
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict momentum = stretch.momentum;
  const LionFactors f = factors;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    LionElement(f, gradients[i], parameters[i], momentum[i]);
  }
}

}  // namespace

LionFactors FactorsOf(const LionStep& step) {
  return {
      .gradient_scale = step.gradient_scale,
      .decay = Rounded(1.0 - step.learning_rate * step.weight_decay),
      .beta1 = Rounded(step.beta1),
      .beta1_complement = Rounded(1.0 - step.beta1),
      .beta2 = Rounded(step.beta2),
      .beta2_complement = Rounded(1.0 - step.beta2),
      .rate = Rounded(step.learning_rate),
  };
}

namespace host {

void Lion(const LionStep& step, std::span<const float> gradients, std::span<float> parameters,
          std::span<float> momentum) {
  TACTUS_CHECK(gradients.size() == parameters.size());
  TACTUS_CHECK(momentum.size() == parameters.size());
  LionFactors factors = FactorsOf(step);
  if (!Through(step.gate, factors.gradient_scale)) return;
  LionLoop(factors, {gradients.data(), parameters.data(), momentum.data(), parameters.size()});
}

}  // namespace host
}  // namespace tactus::cuda
