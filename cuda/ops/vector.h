// Elementary arithmetic on flat float32 buffers: axpy, scale, fill, copy, squared norm.
//
// Each operation exists once for the host (the specification) and once as a CUDA kernel with the
// same contract. n = 0 does nothing. NaN and infinity propagate as IEEE 754 says.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {
namespace host {

// y <- y + a x, element by element, rounded once for the product and once for the sum (no fused
// multiply-add). x and y have equal lengths and are equal or do not overlap.
// Tolerance against a twin: none, bit-identical.
void Axpy(float a, std::span<const float> x, std::span<float> y);

// x <- a x. Tolerance against a twin: none, bit-identical.
void Scale(float a, std::span<float> x);

// x <- value. Tolerance against a twin: none, bit-identical.
void Fill(float value, std::span<float> x);

// sum_i x_i^2, accumulated in float64.
//
// Returns a finite value exactly when every element is finite: the square of the largest float32
// is 1.2e77 and float64 holds 10^231 of them. So it doubles as the test for non-finite elements.
// Tolerance against a twin: 5e-12 relative, to n = 3e8, of which 1e-12 are this loop's. Squares are
// exact in float64 (24 + 24 <= 53 bits), and a sum of non-negative terms errs by at most 2^-53 for
// each addition that a term goes through. Here that is 4096 in one of 16 interleaved sums of a
// block of 65536 elements, 16 more, and n / 65536 over the blocks: below 9000 in all.
double SquaredNorm(std::span<const float> x);

}  // namespace host

namespace kernels {

// The operations of the host, queued on `stream`: all spans are device memory, which stays as it is
// until they are done. Launches that cannot be queued stop the process.

void Axpy(Stream stream, float a, std::span<const float> x, std::span<float> y);
void Scale(Stream stream, float a, std::span<float> x);
void Fill(Stream stream, float value, std::span<float> x);
// to <- from; equally long, not overlapping.
void Copy(Stream stream, std::span<const float> from, std::span<float> to);

// Sums stay in device memory: into.sums[0], with ChunksIn(n) partials. Within 2^-38 (4e-12) of the
// exact sum: a thread's elements of a chunk, 33 at most, are added up in two float32, see
// two_float.h, or in float64 where these do not hold them; from there a term goes through 13
// additions in a block and, over the blocks, n / 2^21 + 13. The definition is one for all devices,
// however fast their float64 is (docs/decisions/0027-sums-of-two-floats.md).
void SquaredNorm(Stream stream, std::span<const float> x, const SumsInto& into);
// The same, added to what is in into.sums[0].
void AddSquaredNorm(Stream stream, std::span<const float> x, const SumsInto& into);

}  // namespace kernels
}  // namespace tactus::cuda
