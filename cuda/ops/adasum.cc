#include "cuda/ops/adasum.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "cuda/ops/adasum_element.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

// Four neighbouring elements. Spelled out because GCC 12, left to find the vectors in SquaredNorm's
// loop, shuffles them for half of the speed.
typedef double Four __attribute__((vector_size(4 * sizeof(double))));

// Interleaved sums and the elements after which they are added up: as in SquaredNorm.
constexpr std::size_t kPartials = 16;
constexpr std::size_t kFours = kPartials / 4;
constexpr std::size_t kBlock = 65536;

static_assert(kAdasumNorm2Min * kAdasumNorm2Min == std::numeric_limits<double>::min());

// The sums of a[0 .. n) and b[0 .. n), n <= kBlock.
TACTUS_VECTOR_CLONES AdasumSums SumsOfBlock(const float* a, const float* b, std::size_t n) {
  Four dots[kFours] = {};
  Four a_norms2[kFours] = {};
  Four b_norms2[kFours] = {};
  const std::size_t whole = n / kPartials * kPartials;
  for (std::size_t i = 0; i < whole; i += kPartials) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kFours; ++k) {
      const float* const p = a + i + 4 * k;
      const float* const q = b + i + 4 * k;
      const Four left = {p[0], p[1], p[2], p[3]};
      const Four right = {q[0], q[1], q[2], q[3]};
      dots[k] += left * right;
      a_norms2[k] += left * left;
      b_norms2[k] += right * right;
    }
  }
  AdasumSums sums;
  for (std::size_t k = 0; k < kPartials; ++k) {
    const double left = whole + k < n ? a[whole + k] : 0;
    const double right = whole + k < n ? b[whole + k] : 0;
    sums.dot += dots[k / 4][k % 4] + left * right;
    sums.a_norm2 += a_norms2[k / 4][k % 4] + left * left;
    sums.b_norm2 += b_norms2[k / 4][k % 4] + right * right;
  }
  return sums;
}

TACTUS_VECTOR_CLONES void CombineLoop(const AdasumCoefficients& coefficients,
                                      const AdasumPair& pair, float* out) {
  const AdasumCoefficients c = coefficients;
  const float* a = pair.a.data();
  const float* b = pair.b.data();
  const std::size_t n = pair.a.size();
  for (std::size_t i = 0; i < n; ++i) out[i] = CombinedElement(c, a[i], b[i]);
}

AdasumPair PartOf(const AdasumPair& pair, const SegmentPart& part) {
  TACTUS_CHECK(part.offset <= pair.a.size() && part.length <= pair.a.size() - part.offset);
  return {.a = pair.a.subspan(part.offset, part.length),
          .b = pair.b.subspan(part.offset, part.length)};
}

}  // namespace

AdasumSums PairSums(const AdasumPair& pair) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  AdasumSums sums;
  for (std::size_t i = 0; i < pair.a.size(); i += kBlock) {
    const AdasumSums block =
        SumsOfBlock(pair.a.data() + i, pair.b.data() + i, std::min(kBlock, pair.a.size() - i));
    sums.dot += block.dot;
    sums.a_norm2 += block.a_norm2;
    sums.b_norm2 += block.b_norm2;
  }
  return sums;
}

AdasumCoefficients CoefficientsOf(const AdasumSums& sums) {
  return {.alpha = AdasumCoefficient(sums.dot, sums.a_norm2),
          .beta = AdasumCoefficient(sums.dot, sums.b_norm2)};
}

void Combine(const AdasumCoefficients& coefficients, const AdasumPair& pair, std::span<float> out) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  TACTUS_CHECK(pair.a.size() == out.size());
  CombineLoop(coefficients, pair, out.data());
}

void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                    std::span<double> sums) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  for (const SegmentPart& part : parts) {
    TACTUS_CHECK(part.segment < sums.size() / kAdasumSumsPerSegment);
    const AdasumSums added = PairSums(PartOf(pair, part));
    double* const row = sums.data() + part.segment * kAdasumSumsPerSegment;
    row[0] += added.dot;
    row[1] += added.a_norm2;
    row[2] += added.b_norm2;
  }
}

void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                   std::span<const double> sums, std::span<float> out) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  TACTUS_CHECK(pair.a.size() == out.size());
  for (const SegmentPart& part : parts) {
    TACTUS_CHECK(part.segment < sums.size() / kAdasumSumsPerSegment);
    const double* const row = sums.data() + part.segment * kAdasumSumsPerSegment;
    const AdasumCoefficients coefficients =
        CoefficientsOf({.dot = row[0], .a_norm2 = row[1], .b_norm2 = row[2]});
    Combine(coefficients, PartOf(pair, part), out.subspan(part.offset, part.length));
  }
}

}  // namespace tactus::cuda::host
