// Eight elements of the quantiser, for the host's loops and the kernels: the fewest whose codes
// fill whole bytes, and two blocks of draws.

#pragma once

#include <cstdint>

#include "cuda/ops/host_device.h"
#include "cuda/ops/philox.h"

namespace tactus::cuda {

inline constexpr unsigned kQuantiseGroup = 8;

// What a segment's elements are encoded with, in integers: float64 is slow on most devices.
//
//   nu = N 2^f    |x| = m 2^e    N and m below 2^24, N from 2^23, e <= f where |x| <= nu
//   R = ceil(2^56 s / N) < 2^40
//   y' = floor(m R 2^-(24 + f - e))            m R fits into 64 bits
//
// y' is 2^32 y, which is m 2^(32 + e - f) s / N. As R is 2^56 s / N and less than 1 more, what is
// rounded down is 2^32 y and less than m 2^(e - f - 24) <= 2^(e - f) <= 1 more. So
//
//   floor(2^32 y) <= y' <= floor(2^32 y) + 1,
//
// and where 2^32 y is a whole number, as for |x| = nu, y' is that.
// All zero: every element has the code 0. (Without initialisers, as it stands in shared memory.)
struct QuantiseFactors {
  float to_fixed;              // the power of two that brings nu into [2, 4)
  std::uint32_t largest_bits;  // of nu there; magnitudes beyond it count as it
  std::uint32_t ratio_low;     // R
  std::uint32_t ratio_high;
};

// nu counts as 0 where its steps are no normal numbers.
TACTUS_HOST_DEVICE inline bool TooSmall(unsigned levels, float scale) {
  return scale < static_cast<float>(levels) * 0x1p-126f;
}

TACTUS_HOST_DEVICE inline QuantiseFactors QuantiseFactorsOf(unsigned bits, float scale) {
  if (bits < 2) return {};
  const std::uint32_t levels = (1u << (bits - 1)) - 1;
  const std::uint32_t of_scale = __builtin_bit_cast(std::uint32_t, scale);
  const std::uint32_t exponent = of_scale >> 23;
  // A scale that is not finite encodes zeros.
  if (TooSmall(levels, scale) || exponent >= 255) return {};
  const std::uint32_t mantissa = of_scale & 0x7fffff;
  const std::uint64_t divisor = 0x800000 | mantissa;
  const std::uint64_t ratio = ((std::uint64_t{levels} << 56) + divisor - 1) / divisor;
  return {.to_fixed = __builtin_bit_cast(float, (255 - exponent) << 23),
          .largest_bits = 0x40000000 | mantissa,
          .ratio_low = static_cast<std::uint32_t>(ratio),
          .ratio_high = static_cast<std::uint32_t>(ratio >> 32)};
}

// nu / s; not finite where nu is not, so that decoding does not hide it.
TACTUS_HOST_DEVICE inline double QuantiseStepOf(unsigned bits, float scale) {
  if (bits < 2) return 0;
  const std::uint32_t levels = (1u << (bits - 1)) - 1;
  return TooSmall(levels, scale) ? 0 : static_cast<double>(scale) / levels;
}

// y'. Not a number counts as nu.
TACTUS_HOST_DEVICE inline std::uint64_t QuantisedFixed(const QuantiseFactors& factors, float x) {
  constexpr std::uint32_t kSmallest = 89u << 23;  // 2^-38, of whose magnitudes y' is 0
  const float magnitude =
      __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & 0x7fffffff);
  // Bits of magnitudes are in the order of what they stand for, the NaNs behind.
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, magnitude * factors.to_fixed);
  bits = bits < factors.largest_bits ? bits : factors.largest_bits;
  bits = bits > kSmallest ? bits : kSmallest;  // so that the shift is below 64
  const std::uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  const std::uint64_t product = std::uint64_t{mantissa} * factors.ratio_low +
                                (std::uint64_t{mantissa * factors.ratio_high} << 32);
  return product >> (24 + 128 - (bits >> 23));
}

// The magnitude of the code of x, at most s. `word` decides: U = word / 2^32.
TACTUS_HOST_DEVICE inline std::uint32_t QuantisedMagnitude(const QuantiseFactors& factors, float x,
                                                           std::uint32_t word) {
  const std::uint64_t y = QuantisedFixed(factors, x);
  return static_cast<std::uint32_t>(y >> 32) + (word < static_cast<std::uint32_t>(y) ? 1 : 0);
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
  // Four codes fill 32 bits at most.
  std::uint32_t fours[2] = {};
  for (unsigned i = kQuantiseGroup; i-- > 0;) {
    const std::uint32_t code = QuantisedCode(factors, bits, x[i], draws[i / 4].word[i % 4]);
    fours[i / 4] = fours[i / 4] << bits | code;
  }
  return std::uint64_t{fours[1]} << (4 * bits) | fours[0];
}

// Out of `bits` bytes of codes, as QuantiseEight has packed them, that of element i < 8.
TACTUS_HOST_DEVICE inline std::uint32_t CodeInEight(std::uint64_t packed, unsigned bits,
                                                    unsigned i) {
  return static_cast<std::uint32_t>(packed >> (bits * i)) & ((1u << bits) - 1);
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
