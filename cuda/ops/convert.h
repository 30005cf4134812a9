// Conversion between float32 and the two 16-bit formats, bfloat16 and IEEE binary16 ("float16"),
// held as their bits, with a factor on the way.
//
// bfloat16 is float32 without its lower 16 bits: the same range, 8 bits of precision. float16 has
// 11 bits of precision and ends at 65504, which is what the factor is for: a gradient is scaled up
// before and down after, by a power of two, so that the factor itself rounds nothing.
//
// Rounding is to the nearest, ties to even; subnormal numbers are kept on both sides. What is too
// large becomes an infinity, as IEEE 754 says (float16: from 65520 on, the middle between 65504 and
// the next power; bfloat16: above its largest number and half a step). It does not stop at the
// largest number: an overflow has to show as a value that is not finite, upon which every member
// skips the update and the factor is halved. A NaN stays a NaN, the one with all lower bits set and
// no sign, 0x7fff or 0x7fffffff.
//
// Tolerance against a twin: none, bit-identical, NaN included.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/stream.h"

namespace tactus::cuda {
namespace host {

// to <- factor * from, the product rounded to float32 and then to 16 bits. Equal lengths, not
// overlapping.
void ToBfloat16(float factor, std::span<const float> from, std::span<std::uint16_t> to);
void ToFloat16(float factor, std::span<const float> from, std::span<std::uint16_t> to);

// to <- factor * from, exact but for the product's rounding to float32.
void FromBfloat16(float factor, std::span<const std::uint16_t> from, std::span<float> to);
void FromFloat16(float factor, std::span<const std::uint16_t> from, std::span<float> to);

}  // namespace host

namespace kernels {

// The operations of the host, queued on `stream`: all spans are device memory. A launch that cannot
// be queued stops the process.

void ToBfloat16(Stream stream, float factor, std::span<const float> from,
                std::span<std::uint16_t> to);
void ToFloat16(Stream stream, float factor, std::span<const float> from,
               std::span<std::uint16_t> to);
void FromBfloat16(Stream stream, float factor, std::span<const std::uint16_t> from,
                  std::span<float> to);
void FromFloat16(Stream stream, float factor, std::span<const std::uint16_t> from,
                 std::span<float> to);

}  // namespace kernels
}  // namespace tactus::cuda
