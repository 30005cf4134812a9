// One element of an SGD step, for the host's loop and the kernel.

#pragma once

#include "cuda/ops/host_device.h"
#include "cuda/ops/sgd.h"

namespace tactus::cuda {

// Which of the three formulas a step needs.
enum class SgdKind { kPlain, kMomentum, kNesterov };

// p and, unless the kind is kPlain, m of the formula in sgd.h after one step.
template <SgdKind kind>
TACTUS_HOST_DEVICE inline void SgdElement(const SgdStep& step, float gradient, float& parameter,
                                          float& momentum) {
  const float g = step.gradient_scale * gradient + step.weight_decay * parameter;
  if constexpr (kind == SgdKind::kPlain) {
    parameter -= step.learning_rate * g;
  } else {
    const float m = step.momentum * momentum + g;
    momentum = m;
    const float direction = kind == SgdKind::kNesterov ? g + step.momentum * m : m;
    parameter -= step.learning_rate * direction;
  }
}

}  // namespace tactus::cuda
