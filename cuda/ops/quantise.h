// Stochastic quantisation to b bits an element, unbiased and without a residual.
//
//   s = 2^(b-1) - 1          levels on each side of zero
//   y = |x| / nu * s         nu: the segment's scale, the largest magnitude over all members
//   l = floor(y)             code = l + [U < y - l], at most s, with the sign of x
//   value = nu * code / s
//
// so that the mean of `value` over the draws U is x, and its distance from x below nu / s. The
// codes are sign and magnitude: the sign in the highest of the b bits, 0 has none. They stand as
// packed_layout.h says.
//
// U is the Philox word of the element, see philox.h, so that a code depends on the element's place
// in its segment, on the segment's number and on `Draws` alone.
//
// y is a multiple of 2^-32 here, and U < y - l is a comparison of integers. It is the exact y
// rounded down, or the next multiple, and exact where that is one, see quantise_element.h; so the
// mean is within 2^-32 of nu / s of x, and an x of magnitude nu has the code s for every draw. All
// of it is integers and one exact product: the same on every device, and without float64, which
// most devices are slow at.
//
// Source: design; the quantiser of DQ-SGD as derived from its abstract, of the family of QSGD's.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/packed_layout.h"
#include "cuda/ops/philox.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// How every segment is quantised, [segments] each; equal on all members.
struct Quantisation {
  // b, 2 to 8; 0: the segment is not sent and decodes to zeros. One bit has no level.
  std::span<const std::uint8_t> bits{};
  // nu, >= 0 and finite. Where nu / s is below the smallest normal float32, it counts as 0 and all
  // codes are 0.
  std::span<const float> scales{};
};

// What is quantised: a flat buffer of finite elements, and whose draws are used. Whoever encodes
// has looked for others, see extremes.h: a NaN or an element beyond its scale has the code s.
struct QuantiseSource {
  std::span<const float> values{};
  Draws draws{};
  std::uint32_t first_segment =
      0;  // number of the table's first, where it is a part of a longer one
};

// One message among several.
struct WeightedMessage {
  std::span<const std::uint32_t> words{};
  double weight = 1;
};

namespace host {

// words <- the codes of every segment, [FirstWords(segments, bits).back()]; unused bits are 0.
//
// Tolerance against a twin: none, bit-identical.
void Quantise(const SegmentTable& segments, const Quantisation& quantisation,
              const QuantiseSource& source, std::span<std::uint32_t> words);

// out <- the values, in the layout of the table; padding is left as it is. (nu / s) * code with
// both operations in float64, rounded once to float32: the code s gives nu itself. A nu that is not
// finite spoils its whole segment. Tolerance against a twin: none, bit-identical.
void Dequantise(const SegmentTable& segments, const Quantisation& quantisation,
                std::span<const std::uint32_t> words, std::span<float> out);

// out <- out + weight * the values: (weight * (nu / s)) * code in float64, rounded once to float32,
// then the sum, rounded once. Tolerance against a twin: none, bit-identical.
void DequantiseAdd(const SegmentTable& segments, const Quantisation& quantisation,
                   const WeightedMessage& message, std::span<float> out);

}  // namespace host

namespace kernels {

// The operations of the host, queued on `stream`: all spans are device memory, `chunks` those of
// the whole table with FirstWords(segments, bits). A launch that cannot be queued stops the
// process.

void Quantise(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
              const QuantiseSource& source, std::span<std::uint32_t> words);
void Dequantise(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
                std::span<const std::uint32_t> words, std::span<float> out);
void DequantiseAdd(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
                   const WeightedMessage& message, std::span<float> out);

}  // namespace kernels
}  // namespace tactus::cuda
