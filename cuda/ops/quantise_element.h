// Eight elements of the quantiser, for the host's loops and the kernels: the fewest whose codes
// fill whole bytes, and two blocks of draws.

#pragma once

#include <cstdint>

#include "cuda/ops/host_device.h"
#include "cuda/ops/philox.h"

namespace tactus::cuda {

inline constexpr unsigned kQuantiseGroup = 8;

// The scalars of one segment.
struct QuantiseFactors {
  float largest = 0;  // nu; magnitudes beyond it count as it
  double encode = 0;  // 2^32 s / nu
  double decode = 0;  // nu / s
};

TACTUS_HOST_DEVICE inline QuantiseFactors QuantiseFactorsOf(unsigned bits, float scale) {
  constexpr double kSmallestNormal = 0x1p-126;
  // More than three roundings may take away, so that nu reaches s; too little to show elsewhere.
  constexpr double kUpwards = 1 + 0x1p-50;
  if (bits < 2) return {};
  const std::uint32_t levels = (1u << (bits - 1)) - 1;
  const double nu = scale;
  if (nu < levels * kSmallestNormal) return {};
  // A scale that is not finite encodes zeros, and decodes them to what is not finite either.
  if (nu - nu != 0) return {.largest = 0, .encode = 0, .decode = nu};
  return {.largest = scale, .encode = 0x1p32 * levels / nu * kUpwards, .decode = nu / levels};
}

// The magnitude of the code of x, at most s. `word` decides: U = word / 2^32.
TACTUS_HOST_DEVICE inline std::uint32_t QuantisedMagnitude(const QuantiseFactors& factors, float x,
                                                           std::uint32_t word) {
  const float magnitude =
      __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & 0x7fffffff);
  const float bounded = magnitude < factors.largest ? magnitude : factors.largest;
  const auto y = static_cast<std::uint64_t>(static_cast<double>(bounded) * factors.encode);
  // Carries into the upper half exactly where word < the lower half of y.
  return static_cast<std::uint32_t>((y + (0xffffffffu - word)) >> 32);
}

// The code of x in `bits` bits.
TACTUS_HOST_DEVICE inline std::uint32_t QuantisedCode(const QuantiseFactors& factors, unsigned bits,
                                                      float x, std::uint32_t word) {
  const std::uint32_t magnitude = QuantisedMagnitude(factors, x, word);
  const bool negative = (__builtin_bit_cast(std::uint32_t, x) >> 31) != 0;
  return magnitude | (negative && magnitude != 0 ? 1u << (bits - 1) : 0);
}

// The code as a number, -s to s.
TACTUS_HOST_DEVICE inline std::int32_t CodeValue(std::uint32_t code, unsigned bits) {
  const std::uint32_t sign = 1u << (bits - 1);
  const auto magnitude = static_cast<std::int32_t>(code & (sign - 1));
  return (code & sign) != 0 ? -magnitude : magnitude;
}

// The codes of eight elements, the first in the lowest bits: `bits` bytes. An x of 0 has the code
// 0, so zeros fill up a segment's last eight.
TACTUS_HOST_DEVICE inline std::uint64_t QuantiseEight(const QuantiseFactors& factors, unsigned bits,
                                                      const float (&x)[kQuantiseGroup],
                                                      const PhiloxBlock (&draws)[2]) {
  std::uint64_t packed = 0;
  for (unsigned i = kQuantiseGroup; i-- > 0;) {
    packed = packed << bits | QuantisedCode(factors, bits, x[i], draws[i / 4].word[i % 4]);
  }
  return packed;
}

// Out of `bits` bytes of codes, as QuantiseEight has packed them, that of element i < 8 as a
// number.
TACTUS_HOST_DEVICE inline std::int32_t ValueInEight(std::uint64_t packed, unsigned bits,
                                                    unsigned i) {
  const auto code = static_cast<std::uint32_t>(packed >> (bits * i)) & ((1u << bits) - 1);
  return CodeValue(code, bits);
}

// The 8 * bits bits of the eight `eighth` of a segment, whose message is words[0 .. count). What
// lies beyond its end reads as 0.
TACTUS_HOST_DEVICE inline std::uint64_t ReadEight(const std::uint32_t* words, std::uint64_t count,
                                                  unsigned bits, std::uint64_t eighth) {
  const std::uint64_t bit = eighth * kQuantiseGroup * bits;
  const std::uint64_t at = bit / 32;
  const unsigned shift = bit % 32;
  const std::uint64_t low = words[at] | (at + 1 < count ? std::uint64_t{words[at + 1]} << 32 : 0);
  if (shift == 0) return low;
  const std::uint64_t high = at + 2 < count ? words[at + 2] : 0;
  return low >> shift | high << (64 - shift);
}

// What one message adds per step of its codes.
TACTUS_HOST_DEVICE inline float StepTimes(double step, std::int32_t value) {
  return static_cast<float>(step * value);
}

}  // namespace tactus::cuda
