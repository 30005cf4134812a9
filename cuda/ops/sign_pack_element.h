// One element of the 1-bit encoding, for the host's loops and the kernels.

#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// sigma from the sum of the squares of `count` elements.
TACTUS_HOST_DEVICE inline float SignScale(double norm2, std::uint64_t count) {
  return count == 0 ? 0.0f : static_cast<float>(std::sqrt(norm2 / static_cast<double>(count)));
}

TACTUS_HOST_DEVICE inline float SentBySign(bool bit, float scale) { return bit ? scale : -scale; }

// Returns the bit of x + e and puts into e what it leaves out.
TACTUS_HOST_DEVICE inline bool EncodeSign(float x, float scale, float& e) {
  const float compensated = x + e;
  const bool bit = compensated >= 0;
  e = compensated - SentBySign(bit, scale);
  return bit;
}

// What one message adds per element, up to the sign.
TACTUS_HOST_DEVICE inline float WeightedScale(double weight, float scale) {
  return static_cast<float>(weight * static_cast<double>(scale));
}

}  // namespace tactus::cuda
