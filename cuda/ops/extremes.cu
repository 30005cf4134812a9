#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/extremes.h"
#include "cuda/ops/extremes_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

__device__ inline void Merge(const Seen& other, Seen& seen) {
  if (other.max_abs_bits > seen.max_abs_bits) seen.max_abs_bits = other.max_abs_bits;
  seen.nonfinite += other.nonfinite;
}

// What every thread of a block of kThreads has seen; thread 0 holds it, for the others it is
// undefined. Every thread calls.
__device__ void MergeOverBlock(Seen& seen) {
  constexpr unsigned kWarps = kThreads / kWarpThreads;
  __shared__ std::uint32_t of_warps[kWarps][2];
  for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    Merge({.max_abs_bits = __shfl_down_sync(0xffffffffu, seen.max_abs_bits, distance),
           .nonfinite = __shfl_down_sync(0xffffffffu, seen.nonfinite, distance)},
          seen);
  }
  if (threadIdx.x % kWarpThreads == 0) {
    of_warps[threadIdx.x / kWarpThreads][0] = seen.max_abs_bits;
    of_warps[threadIdx.x / kWarpThreads][1] = seen.nonfinite;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned k = 1; k < kWarps; ++k) Merge({of_warps[k][0], of_warps[k][1]}, seen);
}

// ExtremesInto as a kernel takes it.
struct ExtremesViews {
  float* max_abs;
  float* nonfinite;
  std::uint32_t* partials;
  std::uint32_t* counters;
};

__device__ inline Seen SeenInChunk(const float* x, std::size_t length) {
  const Cut cut = CutOf(length, x);
  Seen seen;
#pragma unroll 4
  for (std::size_t k = threadIdx.x; k < cut.fours; k += kThreads) {
    const Pack<4> pack = Load<4>(x + cut.head + 4 * k);
    for (int i = 0; i < 4; ++i) See(pack.at[i], seen);
  }
  for (std::size_t k = threadIdx.x; k < cut.singles(); k += kThreads) {
    See(x[k < cut.head ? k : k + 4 * cut.fours], seen);
  }
  return seen;
}

// By thread 0.
__device__ inline void Tell(const Seen& seen, std::uint32_t row, const ExtremesViews& into) {
  into.max_abs[row] = __uint_as_float(seen.max_abs_bits);
  into.nonfinite[row] = static_cast<float>(seen.nonfinite);
}

// The extremes of every row of chunks, a block a chunk; whichever is a row's last puts its chunks
// together.
__global__ void __launch_bounds__(kThreads)
    ExtremesKernel(const float* buffer, ChunkRows rows, ExtremesViews into) {
  if (blockIdx.x == 0) {
    for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kThreads) {
      if (rows.Begin(row) == rows.End(row)) Tell({}, row, into);
    }
  }
  if (rows.count == 0) return;
  const SegmentChunk chunk = rows.At(blockIdx.x);
  Seen seen = SeenInChunk(buffer + chunk.offset, chunk.length);
  MergeOverBlock(seen);
  if (threadIdx.x == 0) {
    into.partials[2 * std::size_t{blockIdx.x}] = seen.max_abs_bits;
    into.partials[2 * std::size_t{blockIdx.x} + 1] = seen.nonfinite;
  }
  const std::uint32_t row = chunk.segment;
  const std::uint32_t begin = rows.Begin(row);
  const std::uint32_t end = rows.End(row);
  if (!IsLast(into.counters + row, end - begin)) return;
  Seen all;
#pragma unroll 4
  for (std::size_t k = begin + threadIdx.x; k < end; k += kThreads) {
    Merge({__ldcg(into.partials + 2 * k), __ldcg(into.partials + 2 * k + 1)}, all);
  }
  MergeOverBlock(all);
  if (threadIdx.x == 0) Tell(all, row, into);
}

}  // namespace

void ExtremesPerSegment(Stream stream, std::span<const float> buffer, const SegmentChunks& segments,
                        const ExtremesInto& into) {
  TACTUS_CHECK(into.extremes.max_abs.size() == segments.segments());
  TACTUS_CHECK(into.extremes.nonfinite.size() == segments.segments());
  TACTUS_CHECK(into.partials.size() >= 2 * segments.chunks.size());
  TACTUS_CHECK(into.counters.size() >= CountersFor(segments.segments()));
  const ChunkRows rows = RowsOf(segments);
  // A block where there is no chunk, too: an empty segment has extremes.
  Launch(stream, {.blocks = rows.rows == 0 ? 0 : std::max(rows.count, 1u)}, ExtremesKernel,
         buffer.data(), rows,
         ExtremesViews{.max_abs = into.extremes.max_abs.data(),
                       .nonfinite = into.extremes.nonfinite.data(),
                       .partials = into.partials.data(),
                       .counters = into.counters.data()});
}

}  // namespace tactus::cuda::kernels
