// One element of a Lion step, for the host's loop and the kernel.

#pragma once

#include "cuda/ops/host_device.h"
#include "cuda/ops/lion.h"

namespace tactus::cuda {

// The factors of one step that are the same for every element: made of scalars in float64, rounded
// once.
struct LionFactors {
  float gradient_scale = 1;
  float decay = 1;  // p is multiplied by it
  float beta1 = 0;
  float beta1_complement = 1;
  float beta2 = 0;
  float beta2_complement = 1;
  float rate = 0;
};

// Requires: the step's scalars are within their ranges.
LionFactors FactorsOf(const LionStep& step);

TACTUS_HOST_DEVICE inline void LionElement(const LionFactors& f, float gradient, float& parameter,
                                           float& momentum) {
  const float g = f.gradient_scale * gradient;
  const float c = f.beta1 * momentum + f.beta1_complement * g;
  // What is neither above nor below zero is its own sign: zero, and a NaN, which is to be seen.
  const float sign = c > 0 ? 1.0f : (c < 0 ? -1.0f : c);
  parameter = parameter * f.decay - f.rate * sign;
  momentum = f.beta2 * momentum + f.beta2_complement * g;
}

}  // namespace tactus::cuda
