// One element of a conversion, for the host's loop and the kernel.
//
// On bits, not by the device's own instructions: those are not the host's, and memory is the bound
// either way.

#pragma once

#include <cstdint>

#include "cuda/ops/host_device.h"

namespace tactus::cuda {

// float32: above it as an integer, without the sign, are the NaNs.
inline constexpr std::uint32_t kInfinityBits = 0x7f800000;
inline constexpr std::uint32_t kNanBits = 0x7fffffff;
inline constexpr std::uint16_t kNanBits16 = 0x7fff;

TACTUS_HOST_DEVICE inline std::uint32_t BitsOf(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

TACTUS_HOST_DEVICE inline float FloatOf(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

TACTUS_HOST_DEVICE inline std::uint16_t Bfloat16Of(float x) {
  const std::uint32_t bits = BitsOf(x);
  // Half of the last bit that is kept, or a little less where that bit is even.
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool nan = (bits & kNanBits) > kInfinityBits;
  return static_cast<std::uint16_t>(nan ? kNanBits16 : rounded);
}

TACTUS_HOST_DEVICE inline std::uint16_t Float16Of(float x) {
  constexpr std::uint32_t kOverflow = 0x477ff000;   // 65520
  constexpr std::uint32_t kNormalMin = 0x38800000;  // 2^-14
  constexpr std::uint32_t kRebias = 0x38000000;     // of the exponents: 127 - 15
  constexpr std::uint32_t kHalf = 0x3f000000;       // 0.5f
  const std::uint32_t bits = BitsOf(x);
  const std::uint32_t magnitude = bits & kNanBits;
  const std::uint32_t normal = (magnitude - kRebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // From 0.5 to 1 float32 counts in steps of 2^-24, and so do float16's subnormal numbers: the sum
  // rounds to them.
  const std::uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - kHalf;
  std::uint32_t rounded = magnitude < kNormalMin ? subnormal : normal;
  rounded = magnitude >= kOverflow ? 0x7c00 : rounded;
  rounded |= bits >> 16 & 0x8000;
  return static_cast<std::uint16_t>(magnitude > kInfinityBits ? kNanBits16 : rounded);
}

// x, and for every NaN the one NaN.
TACTUS_HOST_DEVICE inline float OneNan(float x) {
  return (BitsOf(x) & kNanBits) > kInfinityBits ? FloatOf(kNanBits) : x;
}

TACTUS_HOST_DEVICE inline float OfBfloat16(std::uint16_t bits) {
  return FloatOf(std::uint32_t{bits} << 16);
}

TACTUS_HOST_DEVICE inline float OfFloat16(std::uint16_t bits) {
  constexpr std::uint32_t kRebias = 0x38000000;
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000) << 16;
  const std::uint32_t magnitude = std::uint32_t{bits} & 0x7fff;
  const std::uint32_t normal = (magnitude << 13) + kRebias;
  const std::uint32_t special = (magnitude << 13) | kInfinityBits;  // infinities and NaNs
  const std::uint32_t subnormal = BitsOf(static_cast<float>(magnitude) * 0x1p-24f);
  std::uint32_t wide = magnitude < 0x400 ? subnormal : normal;
  wide = magnitude >= 0x7c00 ? special : wide;
  return FloatOf(sign | wide);
}

}  // namespace tactus::cuda
