// The scalars and one element of Adasum's combination, for the host's loop and the kernel.

#pragma once

#include "cuda/ops/adasum.h"
#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// sqrt(DBL_MIN): the squared norm below which an operand counts as zero.
inline constexpr double kAdasumNorm2Min = 0x1p-511;

TACTUS_HOST_DEVICE inline double AdasumCoefficient(double dot, double norm2) {
  return norm2 >= kAdasumNorm2Min ? 1 - (dot / norm2) * 0.5 : 1;
}

TACTUS_HOST_DEVICE inline float CombinedElement(const AdasumCoefficients& c, float a, float b) {
  return static_cast<float>(c.alpha * static_cast<double>(a) + c.beta * static_cast<double>(b));
}

}  // namespace tactus::cuda
