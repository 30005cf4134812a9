#include <cstddef>

#include "base/check.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/lamb_element.h"
#include "cuda/ops/lamb_parts.h"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

// The buffers as pointers.
struct LambViews {
  const float* gradients;
  float* parameters;
  float* first_moment;
  float* second_moment;

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, gradients + offset, parameters + offset, first_moment + offset,
                 second_moment + offset);
  }
};

LambViews ViewsOf(const LambBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.gradients.size() == length);
  TACTUS_CHECK(buffers.first_moment.size() == length);
  TACTUS_CHECK(buffers.second_moment.size() == length);
  return {.gradients = buffers.gradients.data(),
          .parameters = buffers.parameters.data(),
          .first_moment = buffers.first_moment.data(),
          .second_moment = buffers.second_moment.data()};
}

// Updates the moments, which it keeps or lets go, and adds up x^2 and u^2: in float64 at once, as
// it cannot go over what it keeps again, and 28 bytes an element give it the time.
template <bool kept>
struct MomentsBody {
  static constexpr int kSums = kLambSumsPerSegment;
  LambFactors factors;
  LambViews views;
  const double* gate;

  // Shut, it leaves partial sums that nobody looks at.
  __device__ bool Enter() { return Through(gate, factors.gradient_scale); }
  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return views.CutAt(offset, length);
  }
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    const Pack<width> gradient = Load<width>(views.gradients + i);
    const Pack<width> parameter = Load<width>(views.parameters + i);
    Pack<width> first = Load<width>(views.first_moment + i);
    Pack<width> second = Load<width>(views.second_moment + i);
    for (int k = 0; k < width; ++k) {
      LambMoments(factors, gradient.at[k], first.at[k], second.at[k]);
      const float x = parameter.at[k];
      const float u = LambDirection(factors, x, first.at[k], second.at[k]);
      sums[0].Add(x, x);
      sums[1].Add(u, u);
    }
    if constexpr (kept) {
      Store(views.first_moment + i, first);
      Store(views.second_moment + i, second);
    }
  }
};

// x <- x + rate * u, of moments that are updated already, or are so here. Computes u a second time,
// to the same bits: cheaper than to keep it.
template <bool updates>
struct MoveBody {
  LambFactors factors;
  LambViews views;
  const double* sums;  // [segments][kLambSumsPerSegment]
  const double* gate;

  __device__ bool Enter() { return Through(gate, factors.gradient_scale); }
  __device__ float Begin(std::size_t segment) const {
    const double* const row = sums + segment * kLambSumsPerSegment;
    return LambRate(factors, {.parameters = row[0], .direction = row[1]});
  }
  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return views.CutAt(offset, length);
  }
  template <int width>
  __device__ void At(std::size_t i, float rate) const {
    Pack<width> parameter = Load<width>(views.parameters + i);
    Pack<width> first = Load<width>(views.first_moment + i);
    Pack<width> second = Load<width>(views.second_moment + i);
    if constexpr (updates) {
      const Pack<width> gradient = Load<width>(views.gradients + i);
      for (int k = 0; k < width; ++k) {
        LambMoments(factors, gradient.at[k], first.at[k], second.at[k]);
      }
      Store(views.first_moment + i, first);
      Store(views.second_moment + i, second);
    }
    for (int k = 0; k < width; ++k) {
      parameter.at[k] += rate * LambDirection(factors, parameter.at[k], first.at[k], second.at[k]);
    }
    Store(views.parameters + i, parameter);
  }
};

}  // namespace

void Lamb(Stream stream, const LambStep& step, const SegmentChunks& segments,
          const LambBuffers& buffers, const SumsInto& into) {
  const LambFactors factors = FactorsOf(step);
  const LambViews views = ViewsOf(buffers);
  SumsOfSegments(stream, MomentsBody<true>{.factors = factors, .views = views, .gate = step.gate},
                 segments, into);
  SweepSegments(
      stream, segments,
      MoveBody<false>{
          .factors = factors, .views = views, .sums = into.sums.data(), .gate = step.gate});
}

void LambSums(Stream stream, const LambStep& step, const SegmentChunks& segments,
              const LambBuffers& buffers, const SumsInto& into) {
  SumsOfSegments(
      stream,
      MomentsBody<false>{.factors = FactorsOf(step), .views = ViewsOf(buffers), .gate = step.gate},
      segments, into);
}

void LambOfParts(Stream stream, const LambStep& step, const SegmentChunks& segments,
                 const LambBuffers& buffers, std::span<const double> sums) {
  TACTUS_CHECK(sums.size() == kLambSumsPerSegment * segments.segments());
  SweepSegments(stream, segments,
                MoveBody<true>{.factors = FactorsOf(step),
                               .views = ViewsOf(buffers),
                               .sums = sums.data(),
                               .gate = step.gate});
}

}  // namespace tactus::cuda::kernels
