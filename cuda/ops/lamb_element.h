// The scalars and one element of a LAMB step, for the host's loop and the kernel.

#pragma once

#include <cmath>

#include "cuda/ops/host_device.h"
#include "cuda/ops/lamb.h"

namespace tactus::cuda {

// The factors of one step that are the same for every element, rounded once from float64; and what
// the ratio is made with, in float64.
struct LambFactors {
  float gradient_scale = 1;
  float beta1 = 0;
  float beta1_complement = 1;
  float beta2 = 0;
  float beta2_complement = 1;
  float first_correction = 1;  // 1 / (1 - beta1^t)
  float root_correction = 1;   // sqrt(1 - beta2^t)
  float epsilon = 0;
  float weight_decay = 0;
  double learning_rate = 0;
  double ratio_min = 0;
  double ratio_max = 0;
};

// Requires: the step's scalars are within their ranges.
LambFactors FactorsOf(const LambStep& step);

// m and v after the gradient.
TACTUS_HOST_DEVICE inline void LambMoments(const LambFactors& f, float gradient, float& first,
                                           float& second) {
  const float g = f.gradient_scale * gradient;
  first = f.beta1 * first + f.beta1_complement * g;
  second = f.beta2 * second + f.beta2_complement * g * g;
}

// u.
TACTUS_HOST_DEVICE inline float LambDirection(const LambFactors& f, float parameter, float first,
                                              float second) {
  const float root = std::sqrt(second) / f.root_correction + f.epsilon;
  return f.first_correction * first / root + f.weight_decay * parameter;
}

// Squared norms of a segment.
struct LambNorms {
  double parameters = 0;
  double direction = 0;
};

TACTUS_HOST_DEVICE inline double LambRatio(const LambFactors& f, const LambNorms& norms) {
  if (norms.parameters == 0 || norms.direction == 0) return 1;
  const double ratio = std::sqrt(norms.parameters) / std::sqrt(norms.direction);
  return ratio < f.ratio_min ? f.ratio_min : f.ratio_max < ratio ? f.ratio_max : ratio;
}

// What u is multiplied by when it is added to x: -learning_rate * ratio, rounded once.
TACTUS_HOST_DEVICE inline float LambRate(const LambFactors& f, const LambNorms& norms) {
  return static_cast<float>(-f.learning_rate * LambRatio(f, norms));
}

}  // namespace tactus::cuda
