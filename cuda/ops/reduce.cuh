// Sums over buffers and over the segments of a buffer, accumulated in float64 in an order that the
// lengths alone fix: a block adds up a chunk, and one block a result adds up its chunks.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/ops/launch.cuh"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {

inline constexpr unsigned kWarpThreads = 32;

// Adds up every thread's values over a block of kThreads; thread 0 holds the sums, for the others
// they are undefined. Every thread calls. (static: shared memory belongs to one kernel's file)
template <int count>
static __device__ void AddOverBlock(double (&values)[count]) {
  constexpr unsigned kWarps = kThreads / kWarpThreads;
  __shared__ double of_warps[count][kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads;
  const unsigned warp = threadIdx.x / kWarpThreads;
  for (int i = 0; i < count; ++i) {
    for (unsigned distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      values[i] += __shfl_down_sync(0xffffffffu, values[i], distance);
    }
    if (lane == 0) of_warps[i][warp] = values[i];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < count; ++i) {
    for (unsigned k = 1; k < kWarps; ++k) values[i] += of_warps[i][k];
  }
}

// Which chunk a block has: of a table, or, without one, of a buffer cut from its start.
struct ChunkSource {
  const SegmentChunk* chunks = nullptr;
  std::size_t n = 0;  // of the buffer, where there is no table

  __device__ SegmentChunk At(std::size_t block) const {
    if (chunks != nullptr) return chunks[block];
    const std::size_t offset = block * kChunkLength;
    const std::size_t left = n - offset;
    const std::size_t length = left < kChunkLength ? left : kChunkLength;
    return {.offset = offset, .length = static_cast<std::uint32_t>(length), .segment = 0};
  }
};

// partials[block][kSums] <- the sums of the block's chunk. Body::Add<width>(i, sums) adds the terms
// of the elements [i, i + width); Body::CutAt(offset, length) says where its operands allow widths
// of 4.
template <class Body>
__global__ void __launch_bounds__(kThreads)
    SumChunkKernel(Body body, ChunkSource source, double* partials) {
  if (!Enter(body)) return;
  const SegmentChunk chunk = source.At(blockIdx.x);
  const Cut cut = body.CutAt(chunk.offset, chunk.length);
  double sums[Body::kSums] = {};
#pragma unroll 4
  for (std::size_t k = threadIdx.x; k < cut.fours; k += kThreads) {
    body.template Add<4>(chunk.offset + cut.head + 4 * k, sums);
  }
  for (std::size_t k = threadIdx.x; k < cut.singles(); k += kThreads) {
    body.template Add<1>(chunk.offset + (k < cut.head ? k : k + 4 * cut.fours), sums);
  }
  AddOverBlock(sums);
  if (threadIdx.x != 0) return;
  for (int i = 0; i < Body::kSums; ++i)
    partials[blockIdx.x * std::size_t{Body::kSums} + i] = sums[i];
}

// The chunks of each result: of a table's segments, or all of them.
struct ChunkRows {
  const std::uint32_t* first = nullptr;  // [results + 1]
  std::size_t chunks = 0;                // where there is no table
};

// sums[block][count] <- the partial sums of the block's chunks; onto what is there if `add`.
template <int count, bool add>
__global__ void __launch_bounds__(kThreads)
    AddPartialsKernel(ChunkRows rows, const double* partials, double* sums) {
  const std::size_t begin = rows.first == nullptr ? 0 : rows.first[blockIdx.x];
  const std::size_t end = rows.first == nullptr ? rows.chunks : rows.first[blockIdx.x + 1];
  double values[count] = {};
#pragma unroll 8
  for (std::size_t chunk = begin + threadIdx.x; chunk < end; chunk += kThreads) {
    for (int i = 0; i < count; ++i) values[i] += partials[chunk * count + i];
  }
  AddOverBlock(values);
  if (threadIdx.x != 0) return;
  double* const row = sums + blockIdx.x * std::size_t{count};
  for (int i = 0; i < count; ++i) row[i] = add ? row[i] + values[i] : values[i];
}

// into.sums[kSums] <- the body's sums over elements [0, n), added to what is there if `add`.
template <bool add = false, class Body>
void SumOfBuffer(Stream stream, const Body& body, std::size_t n, const SumsInto& into) {
  const std::size_t chunks = ChunksIn(n);
  TACTUS_CHECK(into.sums.size() >= Body::kSums);
  TACTUS_CHECK(into.partials.size() >= chunks * Body::kSums);
  Launch(stream, {.blocks = chunks}, SumChunkKernel<Body>, body, ChunkSource{.n = n},
         into.partials.data());
  Launch(stream, {.blocks = 1}, AddPartialsKernel<Body::kSums, add>, ChunkRows{.chunks = chunks},
         into.partials.data(), into.sums.data());
}

// into.sums[segments][kSums] <- the body's sums over each segment, added to what is there if `add`.
template <bool add = false, class Body>
void SumsOfSegments(Stream stream, const Body& body, const SegmentChunks& segments,
                    const SumsInto& into) {
  TACTUS_CHECK(into.sums.size() >= segments.segments() * Body::kSums);
  TACTUS_CHECK(into.partials.size() >= segments.chunks.size() * Body::kSums);
  Launch(stream, {.blocks = segments.chunks.size()}, SumChunkKernel<Body>, body,
         ChunkSource{.chunks = segments.chunks.data()}, into.partials.data());
  Launch(stream, {.blocks = segments.segments()}, AddPartialsKernel<Body::kSums, add>,
         ChunkRows{.first = segments.first.data()}, into.partials.data(), into.sums.data());
}

}  // namespace tactus::cuda::kernels
