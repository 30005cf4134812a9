#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/frozen_lamb_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

// The buffers as pointers.
struct FrozenViews {
  const float* gradients;
  float* parameters;
  float* first_moment;
  const float* second_moment;
  float* fresh_moment;

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, gradients + offset, parameters + offset, first_moment + offset,
                 second_moment + offset, fresh_moment + offset);
  }
};

FrozenViews ViewsOf(const FrozenLambBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.gradients.size() == length);
  TACTUS_CHECK(buffers.first_moment.size() == length);
  TACTUS_CHECK(buffers.second_moment.size() == length);
  TACTUS_CHECK(buffers.fresh_moment.size() == length);
  return {.gradients = buffers.gradients.data(),
          .parameters = buffers.parameters.data(),
          .first_moment = buffers.first_moment.data(),
          .second_moment = buffers.second_moment.data(),
          .fresh_moment = buffers.fresh_moment.data()};
}

// Updates the moments and adds up u0^2 and u^2.
struct MomentsBody {
  static constexpr int kSums = 2;
  FrozenLambFactors factors;
  FrozenViews views;
  const double* gate;

  __device__ bool Enter() { return Through(gate, factors.lamb.gradient_scale); }
  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return views.CutAt(offset, length);
  }
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    const Pack<width> gradient = Load<width>(views.gradients + i);
    const Pack<width> parameter = Load<width>(views.parameters + i);
    const Pack<width> second = Load<width>(views.second_moment + i);
    Pack<width> first = Load<width>(views.first_moment + i);
    Pack<width> fresh = Load<width>(views.fresh_moment + i);
    for (int k = 0; k < width; ++k) {
      LambMoments(factors.lamb, gradient.at[k], first.at[k], fresh.at[k]);
      const float own = FrozenDirection(factors, first.at[k], second.at[k]);
      const float u = WithDecay(factors, own, parameter.at[k]);
      sums[0].Add(own, own);
      sums[1].Add(u, u);
    }
    Store(views.first_moment + i, first);
    Store(views.fresh_moment + i, fresh);
  }
};

// The largest of every thread's values over a block of kThreads; thread 0 holds it, for the others
// it is undefined. Every thread calls.
__device__ double LargestOverBlock(double value) {
  constexpr unsigned kWarps = kThreads / kWarpThreads;
  __shared__ double of_warps[kWarps];
  for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    value = fmax(value, __shfl_down_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % kWarpThreads == 0) of_warps[threadIdx.x / kWarpThreads] = value;
  __syncthreads();
  if (threadIdx.x != 0) return 0;
  for (unsigned k = 1; k < kWarps; ++k) value = fmax(value, of_warps[k]);
  return value;
}

// max d / r of every segment, a block a chunk; whichever is a segment's last puts its chunks
// together. Of segments without a chunk it is 0.
__global__ void __launch_bounds__(kThreads)
    LargestKernel(FrozenLambFactors factors, FrozenViews views, const double* gate, ChunkRows rows,
                  SumsViews into) {
  if (!Through(gate, factors.lamb.gradient_scale)) return;
  if (blockIdx.x == 0) ClearEmptyRows<1>(rows, into.sums);
  if (rows.count == 0) return;
  const SegmentChunk chunk = rows.At(blockIdx.x);
  double largest = 0;
  for (std::size_t k = threadIdx.x; k < chunk.length; k += kThreads) {
    const std::size_t i = chunk.offset + k;
    largest =
        fmax(largest, FrozenOverFresh(factors, views.second_moment[i], views.fresh_moment[i]));
  }
  largest = LargestOverBlock(largest);
  if (threadIdx.x == 0) into.partials[blockIdx.x] = largest;
  const std::uint32_t row = chunk.segment;
  if (!IsLast(into.counters + row, rows.End(row) - rows.Begin(row))) return;
  double of_row = 0;
  for (std::uint32_t k = rows.Begin(row) + threadIdx.x; k < rows.End(row); k += kThreads) {
    of_row = fmax(of_row, __ldcg(into.partials + k));
  }
  of_row = LargestOverBlock(of_row);
  if (threadIdx.x == 0) into.sums[row] = of_row;
}

// x <- x + rate * u. Computes u a second time, to the same bits: cheaper than to keep it.
struct MoveBody {
  FrozenLambFactors factors;
  FrozenViews views;
  const double* rates;
  const double* gate;

  __device__ bool Enter() { return Through(gate, factors.lamb.gradient_scale); }
  __device__ float Begin(std::size_t segment) const { return static_cast<float>(rates[segment]); }
  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return views.CutAt(offset, length);
  }
  template <int width>
  __device__ void At(std::size_t i, float rate) const {
    Pack<width> parameter = Load<width>(views.parameters + i);
    const Pack<width> first = Load<width>(views.first_moment + i);
    const Pack<width> second = Load<width>(views.second_moment + i);
    for (int k = 0; k < width; ++k) {
      const float own = FrozenDirection(factors, first.at[k], second.at[k]);
      parameter.at[k] += rate * WithDecay(factors, own, parameter.at[k]);
    }
    Store(views.parameters + i, parameter);
  }
};

}  // namespace

void FrozenLambSums(Stream stream, const FrozenLambStep& step, const SegmentChunks& segments,
                    const FrozenLambBuffers& buffers, const SumsInto& into) {
  const std::size_t count = segments.segments();
  TACTUS_CHECK(into.sums.size() == kFrozenLambSums * count);
  TACTUS_CHECK(into.partials.size() >= MomentsBody::kSums * segments.chunks.size());
  TACTUS_CHECK(into.counters.size() >= CountersFor(count));
  const FrozenLambFactors factors = FactorsOf(step);
  const FrozenViews views = ViewsOf(buffers);
  SumsInto norms = into;
  norms.sums = into.sums.first(MomentsBody::kSums * count);
  SumsOfSegments(stream, MomentsBody{.factors = factors, .views = views, .gate = step.lamb.gate},
                 segments, norms);
  const ChunkRows rows = RowsOf(segments);
  const std::size_t blocks = count == 0 ? 0 : std::max(rows.count, 1u);
  Launch(stream, {.blocks = blocks}, LargestKernel, factors, views, step.lamb.gate, rows,
         SumsViews{.sums = into.sums.data() + MomentsBody::kSums * count,
                   .partials = into.partials.data(),
                   .counters = into.counters.data()});
}

void FrozenLambMove(Stream stream, const FrozenLambStep& step, const SegmentChunks& segments,
                    const FrozenLambBuffers& buffers, std::span<const double> rates) {
  TACTUS_CHECK(rates.size() == segments.segments());
  SweepSegments(stream, segments,
                MoveBody{.factors = FactorsOf(step),
                         .views = ViewsOf(buffers),
                         .rates = rates.data(),
                         .gate = step.lamb.gate});
}

}  // namespace tactus::cuda::kernels
