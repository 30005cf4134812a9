// The scalars and one element of a frozen LAMB step, for the host's loops and the kernels.

#pragma once

#include <cmath>

#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/host_device.h"
#include "cuda/ops/lamb_element.h"

namespace tactus::cuda {

struct FrozenLambFactors {
  LambFactors lamb{};
  float frozen_correction = 1;  // sqrt(1 - beta2^f)
};

// Requires: the step's scalars are within their ranges.
FrozenLambFactors FactorsOf(const FrozenLambStep& step);

// u0.
TACTUS_HOST_DEVICE inline float FrozenDirection(const FrozenLambFactors& f, float first,
                                                float second) {
  const float root = std::sqrt(second) / f.frozen_correction + f.lamb.epsilon;
  return f.lamb.first_correction * first / root;
}

// u.
TACTUS_HOST_DEVICE inline float WithDecay(const FrozenLambFactors& f, float own, float parameter) {
  return own + f.lamb.weight_decay * parameter;
}

// d / r; 0 where no gradient has come yet.
TACTUS_HOST_DEVICE inline double FrozenOverFresh(const FrozenLambFactors& f, float second,
                                                 float fresh) {
  if (second == 0) return 0;
  const float of_frozen = std::sqrt(second) / f.frozen_correction + f.lamb.epsilon;
  const float of_fresh = std::sqrt(fresh) / f.lamb.root_correction + f.lamb.epsilon;
  return static_cast<double>(of_frozen) / static_cast<double>(of_fresh);
}

}  // namespace tactus::cuda
