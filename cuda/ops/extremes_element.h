// One element of the extremes, for the host's loop and the kernel.

#pragma once

#include <cstdint>

#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// What was seen so far. Magnitudes are kept as their bits, whose order as integers is theirs.
struct Seen {
  std::uint32_t max_abs_bits = 0;
  std::uint32_t nonfinite = 0;
};

// Folds one more element in, without a branch.
TACTUS_HOST_DEVICE inline void See(float x, Seen& seen) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const std::uint32_t magnitude = __builtin_bit_cast(std::uint32_t, x) & 0x7fffffff;
  const bool finite = magnitude < kInfinity;
  const std::uint32_t counted = finite ? magnitude : 0;
  seen.max_abs_bits = counted > seen.max_abs_bits ? counted : seen.max_abs_bits;
  seen.nonfinite += finite ? 0 : 1;
}

}  // namespace tactus::cuda
