// Sums over buffers and over the segments of a buffer, in an order that the lengths alone fix, in
// one launch: a thread adds up its elements of a chunk in two float32, where these hold them, and
// in float64 where not; from there on all is float64. A block adds up a chunk, and whichever block
// is the last of a result adds up its chunks, by their numbers. Which one that is depends on the
// device and the day; what it adds up does not.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/ops/launch.cuh"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/sweep.cuh"
#include "cuda/ops/two_float.h"

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

// Whether the block is the last of `blocks` that count themselves at `counter`, which is 0 at first
// and again behind the last. What thread 0 of the others had written before is there then, past the
// first cache: read it by __ldcg. Every thread calls.
[[maybe_unused]] static __device__ bool IsLast(std::uint32_t* counter, std::uint32_t blocks) {
  __shared__ bool shared_last;
  if (threadIdx.x == 0) {
    __threadfence();  // what is written above is seen by whoever sees the count
    shared_last = atomicInc(counter, blocks - 1) == blocks - 1;
    __threadfence();
  }
  __syncthreads();
  const bool last = shared_last;
  __syncthreads();  // before the next call sets it
  return last;
}

// The chunks of each row of results: of a table's segments, or, without a table, of a buffer cut
// from its start, which is one row.
struct ChunkRows {
  const SegmentChunk* chunks = nullptr;
  const std::uint32_t* first = nullptr;  // [rows + 1]
  std::size_t n = 0;                     // of the buffer, where there is no table
  std::uint32_t count = 0;               // of all chunks
  std::uint32_t rows = 1;

  __device__ SegmentChunk At(std::size_t block) const {
    if (chunks != nullptr) return chunks[block];
    const std::size_t offset = block * kChunkLength;
    const std::size_t left = n - offset;
    const std::size_t length = left < kChunkLength ? left : kChunkLength;
    return {.offset = offset, .length = static_cast<std::uint32_t>(length), .segment = 0};
  }
  __device__ std::uint32_t Begin(std::uint32_t row) const {
    return first == nullptr ? 0 : first[row];
  }
  __device__ std::uint32_t End(std::uint32_t row) const {
    return first == nullptr ? count : first[row + 1];
  }
};

inline ChunkRows RowsOf(std::size_t n) {
  return {.n = n, .count = static_cast<std::uint32_t>(ChunksIn(n))};
}

inline ChunkRows RowsOf(const SegmentChunks& segments) {
  return {.chunks = segments.chunks.data(),
          .first = segments.first.data(),
          .count = static_cast<std::uint32_t>(segments.chunks.size()),
          .rows = static_cast<std::uint32_t>(segments.segments())};
}

// SumsInto as a kernel takes it.
struct SumsViews {
  double* sums;
  double* partials;
  std::uint32_t* counters;
};

// sums[row][count] <- the partial sums of the row's chunks; onto what is there if `add`. By one
// block.
template <bool add, int count>
__device__ void AddUpRow(const ChunkRows& rows, std::uint32_t row, const SumsViews& into) {
  double values[count] = {};
  const std::size_t end = rows.End(row);
#pragma unroll(8 / count)
  for (std::size_t chunk = rows.Begin(row) + threadIdx.x; chunk < end; chunk += kThreads) {
    for (int i = 0; i < count; ++i) values[i] += __ldcg(into.partials + chunk * count + i);
  }
  AddOverBlock(values);
  if (threadIdx.x != 0) return;
  double* const sums = into.sums + row * std::size_t{count};
  for (int i = 0; i < count; ++i) sums[i] = add ? sums[i] + values[i] : values[i];
}

// sums[row][count] <- 0 for every row without a chunk, which no block would come to. By one block.
template <int count>
__device__ void ClearEmptyRows(const ChunkRows& rows, double* sums) {
  for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kThreads) {
    if (rows.Begin(row) != rows.End(row)) continue;
    for (int i = 0; i < count; ++i) sums[row * std::size_t{count} + i] = 0;
  }
}

// Adds to `sums` the body's terms of a chunk, in every thread those of its own elements, `ahead`
// packs of which are read before the first is added.
template <int ahead, class Body, class Sum>
__device__ void AddChunk(const Body& body, const SegmentChunk& chunk, Sum (&sums)[Body::kSums]) {
  const Cut cut = body.CutAt(chunk.offset, chunk.length);
#pragma unroll(ahead)
  for (std::size_t k = threadIdx.x; k < cut.fours; k += kThreads) {
    body.template Add<4>(chunk.offset + cut.head + 4 * k, sums);
  }
  for (std::size_t k = threadIdx.x; k < cut.singles(); k += kThreads) {
    body.template Add<1>(chunk.offset + (k < cut.head ? k : k + 4 * cut.fours), sums);
  }
}

template <int count, class Sum>
__device__ void ValuesOf(const Sum (&sums)[count], double (&values)[count]) {
  for (int i = 0; i < count; ++i) values[i] = sums[i].value();
}

// The sums of the thread's own elements of a chunk. Body::Hold(sums), of a body that has it, says
// whether a TwoFloat each is enough for them, and then its elements may be gone over twice.
template <class Body>
__device__ void SumChunk(const Body& body, const SegmentChunk& chunk,
                         double (&values)[Body::kSums]) {
  constexpr bool kTriesTwoFloats = requires { &Body::Hold; };
  if constexpr (kTriesTwoFloats) {
    TwoFloat sums[Body::kSums];
    AddChunk<4>(body, chunk, sums);
    if (Body::Hold(sums)) return ValuesOf(sums, values);
  }
  Float64Sum sums[Body::kSums];
  AddChunk<kTriesTwoFloats ? 1 : 4>(body, chunk, sums);  // what is gone over again is seldom much
  ValuesOf(sums, values);
}

// The sums of every row of chunks, a block a chunk. Body::Add<width>(i, sums) adds the terms of the
// elements [i, i + width) by Add of a TwoFloat or a Float64Sum; Body::CutAt(offset, length) says
// where its operands allow widths of 4; Body::Finish(rows, sums), of a body that has it, is called
// by one block once all rows are there, and the block counts itself at the counter behind those of
// the rows.
template <bool add, class Body>
__global__ void __launch_bounds__(kThreads) SumsKernel(Body body, ChunkRows rows, SumsViews into) {
  constexpr int kSums = Body::kSums;
  if (!Enter(body)) return;
  if (!add && blockIdx.x == 0) ClearEmptyRows<kSums>(rows, into.sums);
  if (rows.count > 0) {
    const SegmentChunk chunk = rows.At(blockIdx.x);
    double sums[kSums];
    SumChunk(body, chunk, sums);
    AddOverBlock(sums);
    if (threadIdx.x == 0) {
      for (int i = 0; i < kSums; ++i) into.partials[blockIdx.x * std::size_t{kSums} + i] = sums[i];
    }
    const std::uint32_t row = chunk.segment;
    if (IsLast(into.counters + row, rows.End(row) - rows.Begin(row))) {
      AddUpRow<add, kSums>(rows, row, into);
    }
  }
  if constexpr (requires { body.Finish(rows, into.sums); }) {
    if (IsLast(into.counters + rows.rows, gridDim.x)) body.Finish(rows, into.sums);
  }
}

template <bool add, class Body>
void SumRows(Stream stream, const Body& body, const ChunkRows& rows, const SumsInto& into) {
  TACTUS_CHECK(into.sums.size() >= std::size_t{rows.rows} * Body::kSums);
  TACTUS_CHECK(into.partials.size() >= std::size_t{rows.count} * Body::kSums);
  TACTUS_CHECK(into.counters.size() >= CountersFor(rows.rows));
  // A block where there is no chunk, too: the sums of nothing are 0.
  const std::size_t blocks = add || rows.rows == 0 ? rows.count : std::max(rows.count, 1u);
  Launch(stream, {.blocks = blocks}, SumsKernel<add, Body>, body, rows,
         SumsViews{.sums = into.sums.data(),
                   .partials = into.partials.data(),
                   .counters = into.counters.data()});
}

// into.sums[kSums] <- the body's sums over elements [0, n), added to what is there if `add`.
template <bool add = false, class Body>
void SumOfBuffer(Stream stream, const Body& body, std::size_t n, const SumsInto& into) {
  SumRows<add>(stream, body, RowsOf(n), into);
}

// into.sums[segments][kSums] <- the body's sums over each segment, added to what is there if `add`.
template <bool add = false, class Body>
void SumsOfSegments(Stream stream, const Body& body, const SegmentChunks& segments,
                    const SumsInto& into) {
  SumRows<add>(stream, body, RowsOf(segments), into);
}

}  // namespace tactus::cuda::kernels
