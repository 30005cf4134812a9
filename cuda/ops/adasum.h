// Adasum's pair operator: of two gradients, each loses half of its projection on the other.
//
//   d = a.b   A = a.a   B = b.b                       per segment (one parameter tensor)
//   alpha = 1 - d / (2 A)   beta = 1 - d / (2 B)      1 where the norm is as good as zero
//   out = alpha a + beta b
//
// Aligned gradients are averaged, orthogonal ones summed. The sums come first and apart from the
// combination, because the members of a group hold a segment in pieces: each computes the partial
// sums of its own pieces, the group adds them up, and then each combines its own pieces.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// The two operands over the same range of the flat buffer: equal lengths. The operator is symmetric
// to the last bit, but all members name the operand of the lower rank `a`, so that what they report
// of it agrees.
struct AdasumPair {
  std::span<const float> a{};
  std::span<const float> b{};
};

// d, A and B of one segment or of a part of it. [gradient^2]
struct AdasumSums {
  double dot = 0;      // a.b
  double a_norm2 = 0;  // a.a, >= 0
  double b_norm2 = 0;  // b.b, >= 0
};

// What the operands are multiplied by: alpha within ||b|| / (2 ||a||) of 1, beta within
// ||a|| / (2 ||b||), so that the far shorter operand's may be large and of either sign.
struct AdasumCoefficients {
  double alpha = 1;
  double beta = 1;
};

// In a row of sums: doubles a segment, in the order d, A, B; segment s begins at s times this.
inline constexpr std::size_t kAdasumSumsPerSegment = 3;

namespace host {

// d, A and B of two equally long stretches, in one pass, accumulated in float64.
//
// Products of two float32 are exact in float64, so A and B are host::SquaredNorm's to the last bit,
// and all three are finite exactly when every element is. Tolerance against a twin, to n = 3e8:
// 5e-12 of the sum of the products' magnitudes, and for d besides 2^-44 of ||a|| ||b||; why, see
// SquaredNorm, whose layout of partial sums this is.
AdasumSums PairSums(const AdasumPair& pair);

// alpha and beta from the sums of the whole segment:
//
//   alpha = A >= sqrt(DBL_MIN) ? 1 - (d / A) * 0.5 : 1      beta = the same with B
//
// The test is on the squared norm, the division comes before the halving, both as published, so
// that all implementations agree to the last bit. A sum that is not a number gives 1.
//
// Source: [horovod] horovod/common/ops/adasum/adasum.h, the code of [adasum].
AdasumCoefficients CoefficientsOf(const AdasumSums& sums);

// out <- alpha a + beta b, products and sum in float64, rounded once when stored. `out` is a, is b
// or overlaps neither; all three have equal lengths. Not-a-numbers and infinities propagate.
// Tolerance against a twin: none, bit-identical.
void Combine(const AdasumCoefficients& coefficients, const AdasumPair& pair, std::span<float> out);

// Adds PairSums of every part to the sums of its segment.
//
// pair   the operands over one range; `parts` lie within it
// sums   [3 x segments] d, A, B of each segment in the table's order; zero before the first call
void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                    std::span<double> sums);

// Combines every part with the coefficients of its segment's sums, which are those of the whole
// segment: added up over all who hold a part of it. Elements of `out` in no part stay as they are.
//
// sums   [3 x segments] as from AdasumPartials
// out    over the same range; is a, is b or overlaps neither
void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                   std::span<const double> sums, std::span<float> out);

}  // namespace host

namespace kernels {

// The host's operations, queued on `stream`; every span is device memory. `parts` are chunks of
// parts, whose offsets count from the operands' start.

// Adds to into.sums [3 x segments], which are the host's within its bound; the partials are 3 a
// chunk.
void AdasumPartials(Stream stream, const AdasumPair& pair, const SegmentChunks& parts,
                    const SumsInto& into);

// sums  [3 x segments]; out is bit-identical for equal sums
void AdasumCombine(Stream stream, const AdasumPair& pair, const SegmentChunks& parts,
                   std::span<const double> sums, std::span<float> out);

}  // namespace kernels
}  // namespace tactus::cuda
