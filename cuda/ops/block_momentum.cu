#include "base/check.h"
#include "cuda/ops/block_momentum.h"
#include "cuda/ops/block_momentum_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

struct DeltaBody {
  const float* now;
  const float* start;
  float* delta;

  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> from = Load<width>(start + i);
    Pack<width> difference = Load<width>(now + i);
    for (int k = 0; k < width; ++k) difference.at[k] -= from.at[k];
    Store(delta + i, difference);
  }
};

struct PlainBody {
  BlockMomentumStep step;
  const float* start;
  const float* delta;
  float* parameters;
  bool kept = true;
  BlockMomentumFactors factors{};

  // Behind a shut gate parameters go back all the same, unless the group was lost.
  __device__ bool Enter() {
    kept = Through(step);
    factors = FactorsOf(step);
    return !LostBehind(step);
  }
  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> moved = Load<width>(delta + i);
    Pack<width> x = Load<width>(start + i);
    for (int k = 0; k < width && kept; ++k) x.at[k] = PlainElement(factors, x.at[k], moved.at[k]);
    Store(parameters + i, x);
  }
};

struct MomentumBody {
  BlockMomentumStep step;
  const float* start;
  const float* delta;
  float* momentum;
  float* parameters;
  bool kept = true;
  BlockMomentumFactors factors{};

  __device__ bool Enter() {
    kept = Through(step);
    factors = FactorsOf(step);
    return !LostBehind(step);
  }
  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> moved = Load<width>(delta + i);
    Pack<width> x = Load<width>(start + i);
    Pack<width> u = Load<width>(momentum + i);
    for (int k = 0; k < width && kept; ++k) {
      x.at[k] = MomentumElement(factors, x.at[k], moved.at[k], u.at[k]);
    }
    Store(momentum + i, u);
    Store(parameters + i, x);
  }
};

}  // namespace

void ParameterDelta(Stream stream, std::span<const float> now, std::span<const float> start,
                    std::span<float> delta) {
  TACTUS_CHECK(now.size() == delta.size() && start.size() == delta.size());
  Sweep(stream, CutOf(delta.size(), {now.data(), start.data(), delta.data()}),
        DeltaBody{.now = now.data(), .start = start.data(), .delta = delta.data()});
}

void BlockMomentum(Stream stream, const BlockMomentumStep& step,
                   const BlockMomentumBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.start.size() == length && buffers.delta.size() == length);
  const float* const start = buffers.start.data();
  const float* const delta = buffers.delta.data();
  float* const parameters = buffers.parameters.data();
  if (FactorsOf(step).plain) {
    return Sweep(stream, CutOf(length, {start, delta, parameters}),
                 PlainBody{.step = step, .start = start, .delta = delta, .parameters = parameters});
  }
  TACTUS_CHECK(buffers.momentum.size() == length);
  float* const momentum = buffers.momentum.data();
  Sweep(stream, CutOf(length, {start, delta, momentum, parameters}),
        MomentumBody{.step = step,
                     .start = start,
                     .delta = delta,
                     .momentum = momentum,
                     .parameters = parameters});
}

}  // namespace tactus::cuda::kernels
