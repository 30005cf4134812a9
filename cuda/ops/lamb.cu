#include <cstddef>

#include "base/check.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/lamb_element.h"
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

// Updates the moments and adds up x^2 and u^2: in float64 at once, as it cannot go over them again,
// and 28 bytes an element give it the time.
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
    Store(views.first_moment + i, first);
    Store(views.second_moment + i, second);
  }
};

// x <- x + rate * u. Computes u a second time, to the same bits: cheaper than to keep it.
struct MoveBody {
  LambFactors factors;
  LambViews views;
  const double* sums;
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
    const Pack<width> first = Load<width>(views.first_moment + i);
    const Pack<width> second = Load<width>(views.second_moment + i);
    for (int k = 0; k < width; ++k) {
      parameter.at[k] += rate * LambDirection(factors, parameter.at[k], first.at[k], second.at[k]);
    }
    Store(views.parameters + i, parameter);
  }
};

}  // namespace

void Lamb(Stream stream, const LambStep& step, const SegmentChunks& segments,
          const LambBuffers& buffers, const SumsInto& into) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.gradients.size() == length);
  TACTUS_CHECK(buffers.first_moment.size() == length);
  TACTUS_CHECK(buffers.second_moment.size() == length);
  TACTUS_CHECK(buffers.ratios.empty());
  const LambFactors factors = FactorsOf(step);
  const LambViews views{.gradients = buffers.gradients.data(),
                        .parameters = buffers.parameters.data(),
                        .first_moment = buffers.first_moment.data(),
                        .second_moment = buffers.second_moment.data()};
  SumsOfSegments(stream, MomentsBody{.factors = factors, .views = views, .gate = step.gate},
                 segments, into);
  SweepSegments(
      stream, segments,
      MoveBody{.factors = factors, .views = views, .sums = into.sums.data(), .gate = step.gate});
}

}  // namespace tactus::cuda::kernels
