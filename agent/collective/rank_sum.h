// The one way in which host transports add up: element by element in rank order.
//
// Because every element is summed in the same order whatever the transport, the length and the cut
// into buckets, none of these changes a bit of the result.

#pragma once

#include <span>

namespace tactus::collective {

// out[i] <- ((x_0[i] + x_1[i]) + x_2[i]) + ..., rounded after each sum.
//
// sources [n >= 1] of pointers to out.size() elements each, in rank order; `out` is one of them or
// overlaps none.
void SumInRankOrder(std::span<const float* const> sources, std::span<float> out);

}  // namespace tactus::collective
