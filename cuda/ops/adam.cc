#include "cuda/ops/adam.h"

#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/adam_element.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda {
namespace {

// One stretch of the flat buffers.
struct Stretch {
  const float* gradients;
  float* parameters;
  float* first_moment;
  float* second_moment;
  std::size_t length;
};

float Rounded(double value) { return static_cast<float>(value); }

TACTUS_VECTOR_CLONES void AdamLoop(const AdamFactors& factors, const Stretch& stretch) {
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict first_moment = stretch.first_moment;
  float* __restrict second_moment = stretch.second_moment;
  const AdamFactors f = factors;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    AdamElement(f, gradients[i], {parameters[i], first_moment[i], second_moment[i]});
  }
}

}  // namespace

AdamFactors FactorsOf(const AdamStep& step) {
  TACTUS_CHECK(step.step >= 1);
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const std::uint64_t second_step = step.second_step == 0 ? step.step : step.second_step;
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(second_step));
  const double beta2 = step.frozen ? 1 : step.beta2;
  return {
      .gradient_scale = step.gradient_scale,
      .coupled_decay = step.decoupled ? 0.0f : Rounded(step.weight_decay),
      .decoupled_decay =
          step.decoupled ? Rounded(1.0 - step.learning_rate * step.weight_decay) : 1.0f,
      .beta1 = Rounded(step.beta1),
      .beta1_complement = Rounded(1.0 - step.beta1),
      .beta2 = Rounded(beta2),
      .beta2_complement = Rounded(1.0 - beta2),
      .root_correction = Rounded(std::sqrt(correction2)),
      .rate = Rounded(step.learning_rate / correction1),
      .epsilon = step.epsilon,
  };
}

namespace host {

void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
          std::span<float> first_moment, std::span<float> second_moment) {
  TACTUS_CHECK(gradients.size() == parameters.size());
  TACTUS_CHECK(first_moment.size() == parameters.size());
  TACTUS_CHECK(second_moment.size() == parameters.size());
  AdamFactors factors = FactorsOf(step);
  if (!Through(step.gate, factors.gradient_scale)) return;
  AdamLoop(factors, {gradients.data(), parameters.data(), first_moment.data(), second_moment.data(),
                     parameters.size()});
}

}  // namespace host
}  // namespace tactus::cuda
