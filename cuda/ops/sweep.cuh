// Sweep: one pass over flat float32 buffers, element by element, with 16-byte accesses wherever the
// buffers allow them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "cuda/ops/host_device.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/segment_chunks.h"

namespace tactus::cuda::kernels {

// `width` neighbouring elements, 1 or 4.
template <int width>
struct Pack {
  float at[width];
};

// Reads from[0 .. width); for a width of 4 `from` is aligned to 16 bytes.
template <int width>
__device__ inline Pack<width> Load(const float* from) {
  if constexpr (width == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    return {{four.x, four.y, four.z, four.w}};
  } else {
    return {{*from}};
  }
}

template <int width>
__device__ inline void Store(float* to, const Pack<width>& pack) {
  if constexpr (width == 4) {
    // By name, as the compiler takes an assignment apart where there are two, and may not join it.
    __stwb(reinterpret_cast<float4*>(to),
           make_float4(pack.at[0], pack.at[1], pack.at[2], pack.at[3]));
  } else {
    *to = pack.at[0];
  }
}

// How n elements are cut: `head` of them one by one, then `fours` times four with every operand
// aligned, then the rest one by one.
struct Cut {
  std::size_t n = 0;
  std::size_t head = 0;
  std::size_t fours = 0;

  TACTUS_HOST_DEVICE std::size_t singles() const { return n - 4 * fours; }
};

// Where a view lies within 16 bytes.
TACTUS_HOST_DEVICE inline unsigned PhaseOf(const float* view) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(view) % 16);
}

// The cut of n elements of one view.
TACTUS_HOST_DEVICE inline Cut CutOf(std::size_t n, const float* view) {
  const std::size_t to_next = (16 - PhaseOf(view)) % 16 / sizeof(float);
  const std::size_t head = to_next < n ? to_next : n;
  return {.n = n, .head = head, .fours = (n - head) / 4};
}

// The cut of n elements of each of several views. Where they do not lie alike, which views of one
// layout always do, there are no fours.
template <class... Views>
TACTUS_HOST_DEVICE inline Cut CutOf(std::size_t n, const float* first, const Views*... others) {
  if (((PhaseOf(others) != PhaseOf(first)) || ...)) return {.n = n, .head = n, .fours = 0};
  return CutOf(n, first);
}

// The cut of n elements of each of the operands.
inline Cut CutOf(std::size_t n, std::initializer_list<const float*> operands) {
  const float* const first = *operands.begin();
  for (const float* const operand : operands) {
    if (PhaseOf(operand) != PhaseOf(first)) return {.n = n, .head = n, .fours = 0};
  }
  return CutOf(n, first);
}

// Body::Enter(), of a body that has it: what a thread does before anything else. False: nothing.
template <class Body>
__device__ inline bool Enter(Body& body) {
  if constexpr (requires { body.Enter(); }) return body.Enter();
  return true;
}

// Body::At<width>(i) does the elements [i, i + width).
template <class Body>
__global__ void __launch_bounds__(kThreads) SweepKernel(Body body, Cut cut) {
  if (!Enter(body)) return;
  const std::size_t first = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  const std::size_t step = gridDim.x * std::size_t{blockDim.x};
  for (std::size_t k = first; k < cut.fours; k += step) body.template At<4>(cut.head + 4 * k);
  for (std::size_t k = first; k < cut.singles(); k += step) {
    body.template At<1>(k < cut.head ? k : k + 4 * cut.fours);
  }
}

// The same of a body in two halves, Body::Read<width>(i) and Body::Write<width>(i, what was read):
// a thread reads two packs before it writes the first, and there are half as many blocks. For what
// moves so few bytes an element that the beginnings and ends of blocks count.
template <class Body>
__global__ void __launch_bounds__(kThreads) SweepPairsKernel(Body body, Cut cut) {
  const std::size_t first = blockIdx.x * std::size_t{2 * kThreads} + threadIdx.x;
  const std::size_t second = first + kThreads;
  if (first < cut.fours) {
    // Where there is no second one, the first is done twice: to the same, as both are read before.
    const std::size_t last = second < cut.fours ? second : first;
    const auto of_first = body.template Read<4>(cut.head + 4 * first);
    const auto of_last = body.template Read<4>(cut.head + 4 * last);
    body.template Write<4>(cut.head + 4 * first, of_first);
    body.template Write<4>(cut.head + 4 * last, of_last);
  }
  for (const std::size_t single : {first, second}) {
    if (single >= cut.singles()) return;
    const std::size_t i = single < cut.head ? single : single + 4 * cut.fours;
    body.template Write<1>(i, body.template Read<1>(i));
  }
}

// Queues one pass of `body` over the cut. Every element is done by one thread, so that an operand
// may be read and written in place.
template <class Body>
void Sweep(Stream stream, const Cut& cut, const Body& body) {
  const std::size_t most = std::max(cut.fours, cut.singles());
  Launch(stream, {.blocks = BlocksFor(most, kThreads)}, SweepKernel<Body>, body, cut);
}

template <class Body>
void SweepPairs(Stream stream, const Cut& cut, const Body& body) {
  const std::size_t most = std::max(cut.fours, cut.singles());
  Launch(stream, {.blocks = BlocksFor(most, 2 * kThreads)}, SweepPairsKernel<Body>, body, cut);
}

// One block a chunk. Body::Begin(segment) gives what all elements of a segment share, and
// Body::At<width>(i, shared) does the elements [i, i + width); Body::CutAt(offset, length) says
// where its operands allow widths of 4.
template <class Body>
__global__ void __launch_bounds__(kThreads)
    SweepChunkKernel(Body body, const SegmentChunk* chunks) {
  if (!Enter(body)) return;
  const SegmentChunk chunk = chunks[blockIdx.x];
  const auto shared = body.Begin(chunk.segment);
  const Cut cut = body.CutAt(chunk.offset, chunk.length);
#pragma unroll 2
  for (std::size_t k = threadIdx.x; k < cut.fours; k += kThreads) {
    body.template At<4>(chunk.offset + cut.head + 4 * k, shared);
  }
  for (std::size_t k = threadIdx.x; k < cut.singles(); k += kThreads) {
    body.template At<1>(chunk.offset + (k < cut.head ? k : k + 4 * cut.fours), shared);
  }
}

// Queues one pass of `body` over every segment; padding is not touched.
template <class Body>
void SweepSegments(Stream stream, const SegmentChunks& segments, const Body& body) {
  Launch(stream, {.blocks = segments.chunks.size()}, SweepChunkKernel<Body>, body,
         segments.chunks.data());
}

}  // namespace tactus::cuda::kernels
