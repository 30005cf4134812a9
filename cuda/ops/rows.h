// Rows of float64 numbers: the sums that members tell one another beside their vectors, and that
// stay on the device like these. Some thousand numbers at most.

#pragma once

#include <span>

#include "cuda/ops/stream.h"

namespace tactus::cuda {
namespace host {

// out <- lower + higher, element by element. Equal lengths; `out` is either or overlaps neither.
// Tolerance against a twin: none, bit-identical, here and below, but for the bits of a NaN.
void AddRows(std::span<const double> lower, std::span<const double> higher, std::span<double> out);

// to <- from, exactly.
void Widen(std::span<const float> from, std::span<double> to);

// to <- from, rounded; what is too large becomes an infinity.
void Narrow(std::span<const double> from, std::span<float> to);

// count[0] grows by how many of the values are not finite.
void CountNonFinite(std::span<const double> values, std::span<double> count);

}  // namespace host

namespace kernels {

// The operations of the host, queued on `stream`; all spans are device memory.
void AddRows(Stream stream, std::span<const double> lower, std::span<const double> higher,
             std::span<double> out);
void Widen(Stream stream, std::span<const float> from, std::span<double> to);
void Narrow(Stream stream, std::span<const double> from, std::span<float> to);
void CountNonFinite(Stream stream, std::span<const double> values, std::span<double> count);

}  // namespace kernels
}  // namespace tactus::cuda
