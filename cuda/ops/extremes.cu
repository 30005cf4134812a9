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

// partials[block] <- what the block's chunk holds.
__global__ void __launch_bounds__(kThreads)
    SeeChunkKernel(const float* buffer, const SegmentChunk* chunks, std::uint32_t* partials) {
  const SegmentChunk chunk = chunks[blockIdx.x];
  const float* const x = buffer + chunk.offset;
  const Cut cut = CutOf(chunk.length, x);
  Seen seen;
#pragma unroll 4
  for (std::size_t k = threadIdx.x; k < cut.fours; k += kThreads) {
    const Pack<4> pack = Load<4>(x + cut.head + 4 * k);
    for (int i = 0; i < 4; ++i) See(pack.at[i], seen);
  }
  for (std::size_t k = threadIdx.x; k < cut.singles(); k += kThreads) {
    See(x[k < cut.head ? k : k + 4 * cut.fours], seen);
  }
  MergeOverBlock(seen);
  if (threadIdx.x != 0) return;
  partials[2 * std::size_t{blockIdx.x}] = seen.max_abs_bits;
  partials[2 * std::size_t{blockIdx.x} + 1] = seen.nonfinite;
}

// A block a segment.
__global__ void __launch_bounds__(kThreads)
    MergeChunksKernel(const std::uint32_t* first, const std::uint32_t* partials, float* max_abs,
                      float* nonfinite) {
  Seen seen;
  for (std::size_t chunk = first[blockIdx.x] + std::size_t{threadIdx.x};
       chunk < first[blockIdx.x + 1]; chunk += kThreads) {
    Merge({partials[2 * chunk], partials[2 * chunk + 1]}, seen);
  }
  MergeOverBlock(seen);
  if (threadIdx.x != 0) return;
  max_abs[blockIdx.x] = __uint_as_float(seen.max_abs_bits);
  nonfinite[blockIdx.x] = static_cast<float>(seen.nonfinite);
}

}  // namespace

void ExtremesPerSegment(Stream stream, std::span<const float> buffer, const SegmentChunks& segments,
                        const ExtremesInto& into) {
  TACTUS_CHECK(into.extremes.max_abs.size() == segments.segments());
  TACTUS_CHECK(into.extremes.nonfinite.size() == segments.segments());
  TACTUS_CHECK(into.partials.size() >= 2 * segments.chunks.size());
  Launch(stream, {.blocks = segments.chunks.size()}, SeeChunkKernel, buffer.data(),
         segments.chunks.data(), into.partials.data());
  Launch(stream, {.blocks = segments.segments()}, MergeChunksKernel, segments.first.data(),
         into.partials.data(), into.extremes.max_abs.data(), into.extremes.nonfinite.data());
}

}  // namespace tactus::cuda::kernels
