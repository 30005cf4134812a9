// Combination: a weighted sum of several members' buffers.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Buffers of one combination at most: they travel as a kernel's arguments.
inline constexpr std::size_t kCombinedMax = 64;

// One buffer and what it counts for.
struct Weighted {
  double weight = 0;
  std::span<const float> buffer{};
};

namespace host {

// out_i <- sum_p weight_p buffer_p,i, in the order of `parts`, products and sums in float64,
// rounded once when stored.
//
// parts  1 to kCombinedMax, the list itself in host memory; all buffers as long as `out`
// out    is any of the buffers, or overlaps none
//
// So the result depends on the order of the parts alone: members that list them by rank hold equal
// bits. It is within 1 ulp of the exact sum unless more than 28 bits cancel: 64 terms err by at
// most 64 * 2^-53 of the sum of their magnitudes. NaN and infinity propagate; an infinity of weight
// 0 is NaN. Tolerance against a twin: none, bit-identical, but for the bits of a NaN.
void WeightedSum(std::span<const Weighted> parts, std::span<float> out);

}  // namespace host

namespace kernels {

// The operation of the host, queued on `stream`: the buffers are device memory, the list of parts
// is the host's and may go when the call returns. A launch that cannot be queued stops the process.
void WeightedSum(Stream stream, std::span<const Weighted> parts, std::span<float> out);

}  // namespace kernels
}  // namespace tactus::cuda
