#include <cstddef>

#include "base/check.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/adasum_element.h"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

struct PairSumsBody {
  static constexpr int kSums = kAdasumSumsPerSegment;
  const float* a;
  const float* b;

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, a + offset, b + offset);
  }
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    const Pack<width> left = Load<width>(a + i);
    const Pack<width> right = Load<width>(b + i);
    for (int k = 0; k < width; ++k) {
      sums[0].Add(left.at[k], right.at[k]);
      sums[1].Add(left.at[k], left.at[k]);
      sums[2].Add(right.at[k], right.at[k]);
    }
  }
  __device__ static bool Hold(const TwoFloat (&sums)[kSums]) {
    return sums[1].HoldsSquares() && sums[2].HoldsSquares();
  }
};

// `out` may be an operand: an element is read before it is written, by the thread that writes it.
struct CombineBody {
  const float* a;
  const float* b;
  const double* sums;
  float* out;

  __device__ AdasumCoefficients Begin(std::size_t segment) const {
    const double* const row = sums + segment * kAdasumSumsPerSegment;
    return {.alpha = AdasumCoefficient(row[0], row[1]), .beta = AdasumCoefficient(row[0], row[2])};
  }
  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, a + offset, b + offset, out + offset);
  }
  template <int width>
  __device__ void At(std::size_t i, const AdasumCoefficients& coefficients) const {
    const Pack<width> left = Load<width>(a + i);
    const Pack<width> right = Load<width>(b + i);
    Pack<width> combined;
    for (int k = 0; k < width; ++k) {
      combined.at[k] = CombinedElement(coefficients, left.at[k], right.at[k]);
    }
    Store(out + i, combined);
  }
};

}  // namespace

void AdasumPartials(Stream stream, const AdasumPair& pair, const SegmentChunks& parts,
                    const SumsInto& into) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  SumsOfSegments<true>(stream, PairSumsBody{.a = pair.a.data(), .b = pair.b.data()}, parts, into);
}

void AdasumCombine(Stream stream, const AdasumPair& pair, const SegmentChunks& parts,
                   std::span<const double> sums, std::span<float> out) {
  TACTUS_CHECK(pair.a.size() == pair.b.size());
  TACTUS_CHECK(pair.a.size() == out.size());
  TACTUS_CHECK(sums.size() >= parts.segments() * kAdasumSumsPerSegment);
  SweepSegments(
      stream, parts,
      CombineBody{.a = pair.a.data(), .b = pair.b.data(), .sums = sums.data(), .out = out.data()});
}

}  // namespace tactus::cuda::kernels
