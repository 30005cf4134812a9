// One element of an Adam or AdamW step, for the host's loop and the kernel.

#pragma once

#include <cmath>

#include "cuda/ops/adam.h"
#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// The factors of one step that are the same for every element: made of scalars in float64, rounded
// once.
struct AdamFactors {
  float gradient_scale = 1;
  float coupled_decay = 0;    // added to the gradient, times p
  float decoupled_decay = 1;  // p is multiplied by it
  float beta1 = 0;
  float beta1_complement = 1;
  float beta2 = 0;
  float beta2_complement = 1;
  float root_correction = 1;  // sqrt(1 - beta2^t)
  float rate = 0;             // learning_rate / (1 - beta1^t)
  float epsilon = 0;
};

// Requires: the step's scalars are within their ranges.
AdamFactors FactorsOf(const AdamStep& step);

// What one step changes of an element.
struct AdamState {
  float& parameter;
  float& first;
  float& second;
};

TACTUS_HOST_DEVICE inline void AdamElement(const AdamFactors& f, float gradient,
                                           const AdamState& state) {
  const float g = f.gradient_scale * gradient + f.coupled_decay * state.parameter;
  const float first = f.beta1 * state.first + f.beta1_complement * g;
  const float second = f.beta2 * state.second + f.beta2_complement * g * g;
  const float root = std::sqrt(second) / f.root_correction + f.epsilon;
  state.first = first;
  state.second = second;
  state.parameter = state.parameter * f.decoupled_decay - f.rate * first / root;
}

}  // namespace tactus::cuda
