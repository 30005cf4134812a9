#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/packed_table.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sign_pack.h"
#include "cuda/ops/sign_pack_element.h"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffff;
// What a warp does at a time: a word a lane, so that words are read and written side by side.
constexpr unsigned kStretch = kWarpThreads * 32;
// Words of a stretch whose elements are read before the first of them is written.
constexpr unsigned kAhead = 8;

// x, e and sigma, of a buffer or from a chunk on.
struct SignViews {
  const float* input;
  float* error;
  float scale = 0;
};

// What SignDecodeKernel reads.
struct DecodeSource {
  const std::uint32_t* words;
  const float* scales;
  double weight = 1;
};

// Elements of a row of chunks.
__device__ inline std::uint64_t LengthOf(const ChunkRows& rows, std::uint32_t row) {
  const std::uint32_t begin = rows.Begin(row);
  const std::uint32_t end = rows.End(row);
  if (begin == end) return 0;
  return (end - begin - 1) * std::uint64_t{kChunkLength} + rows.At(end - 1).length;
}

// The sum of squares of q, and of these sums the scales.
struct CompensatedBody {
  static constexpr int kSums = 1;
  const float* input;
  const float* error;
  SignSharing sharing;
  float* scales;

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, input + offset, error + offset);
  }
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    const Pack<width> x = Load<width>(input + i);
    const Pack<width> e = Load<width>(error + i);
    for (int k = 0; k < width; ++k) {
      const float q = x.at[k] + e.at[k];
      sums[0].Add(q, q);
    }
  }
  __device__ static bool Hold(const TwoFloat (&sums)[kSums]) { return sums[0].HoldsSquares(); }
  // Its threads share the rows.
  __device__ void Finish(const ChunkRows& rows, const double* norms) const {
    if (sharing == SignSharing::kTable) return FinishTable(rows, norms);
    for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kThreads) {
      scales[row] = SignScale(NormOf(rows, row, norms), LengthOf(rows, row));
    }
  }

 private:
  // Of an empty row another block may be writing the 0.
  __device__ static double NormOf(const ChunkRows& rows, std::uint32_t row, const double* norms) {
    return rows.Begin(row) == rows.End(row) ? 0 : __ldcg(norms + row);
  }
  __device__ void FinishTable(const ChunkRows& rows, const double* norms) const {
    __shared__ float of_all[1];
    double sums[2] = {};  // norm, length
    for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kThreads) {
      sums[0] += NormOf(rows, row, norms);
      sums[1] += static_cast<double>(LengthOf(rows, row));
    }
    AddOverBlock(sums);
    if (threadIdx.x == 0) of_all[0] = SignScale(sums[0], static_cast<std::uint64_t>(sums[1]));
    __syncthreads();
    for (std::uint32_t row = threadIdx.x; row < rows.rows; row += kThreads) scales[row] = of_all[0];
  }
};

// Encodes up to kAhead words of 32 elements, of each of which the lane has one: element i and those
// kWarpThreads, 2 kWarpThreads, ... behind it. words <- the words, the same in every lane.
__device__ inline void EncodeAhead(const SignViews& views, unsigned i, unsigned length,
                                   std::uint32_t (&words)[kAhead]) {
  float inputs[kAhead];
  float errors[kAhead];
#pragma unroll
  for (unsigned k = 0; k < kAhead; ++k) {
    const bool inside = i + k * kWarpThreads < length;
    inputs[k] = inside ? views.input[i + k * kWarpThreads] : 0;
    errors[k] = inside ? views.error[i + k * kWarpThreads] : 0;
  }
#pragma unroll
  for (unsigned k = 0; k < kAhead; ++k) {
    const bool inside = i + k * kWarpThreads < length;
    const bool bit = EncodeSign(inputs[k], views.scale, errors[k]);
    if (inside) views.error[i + k * kWarpThreads] = errors[k];
    words[k] = __ballot_sync(kAllLanes, inside && bit ? 1 : 0);
  }
}

// A block a chunk, a warp a stretch.
__global__ void __launch_bounds__(kThreads)
    SignPackKernel(PackedTable table, SignViews buffers, const float* scales,
                   std::uint32_t* words) {
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const SignViews views{.input = buffers.input + chunk.offset,
                        .error = buffers.error + chunk.offset,
                        .scale = scales[chunk.segment]};
  std::uint32_t* const to = words + table.Word(chunk, 1);
  const unsigned lane = threadIdx.x % kWarpThreads;
  for (unsigned begin = threadIdx.x / kWarpThreads * kStretch; begin < chunk.length;
       begin += kThreads * 32) {
    std::uint32_t own = 0;
    for (unsigned k = 0; k < 32 && begin + 32 * k < chunk.length; k += kAhead) {
      std::uint32_t ahead[kAhead];
      EncodeAhead(views, begin + 32 * k + lane, chunk.length, ahead);
#pragma unroll
      for (unsigned j = 0; j < kAhead; ++j) own = lane == k + j ? ahead[j] : own;
    }
    const unsigned word = begin / 32 + lane;
    if (word * 32 < chunk.length) to[word] = own;
  }
}

// out <- sigma or -sigma, added to what is there if `add`: sigma times the weight then.
template <bool add>
__global__ void __launch_bounds__(kThreads)
    SignDecodeKernel(PackedTable table, DecodeSource source, float* out) {
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const float scale = source.scales[chunk.segment];
  const float sent = add ? WeightedScale(source.weight, scale) : scale;
  const std::uint32_t* const from = source.words + table.Word(chunk, 1);
  float* const to = out + chunk.offset;
  const unsigned lane = threadIdx.x % kWarpThreads;
  for (unsigned begin = threadIdx.x / kWarpThreads * kStretch; begin < chunk.length;
       begin += kThreads * 32) {
    const unsigned word = begin / 32 + lane;
    const std::uint32_t own = word * 32 < chunk.length ? from[word] : 0;
#pragma unroll 8
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned i = begin + 32 * k + lane;
      const float value =
          SentBySign((__shfl_sync(kAllLanes, own, static_cast<int>(k)) >> lane & 1) != 0, sent);
      if (i < chunk.length) to[i] = add ? to[i] + value : value;
    }
  }
}

template <bool add>
void Decode(Stream stream, const PackedChunks& chunks, const DecodeSource& source,
            std::span<float> out) {
  Launch(stream, {.blocks = chunks.table.chunks.size()}, SignDecodeKernel<add>, TableOf(chunks),
         source, out.data());
}

}  // namespace

void SignScales(Stream stream, const SegmentChunks& chunks, SignSharing sharing,
                const SignSource& source, const SignScalesInto& into) {
  TACTUS_CHECK(source.input.size() == source.error.size());
  TACTUS_CHECK(into.scales.size() == chunks.segments());
  if (chunks.segments() == 0) return;
  SumsOfSegments(stream,
                 CompensatedBody{.input = source.input.data(),
                                 .error = source.error.data(),
                                 .sharing = sharing,
                                 .scales = into.scales.data()},
                 chunks, into.norms);
}

void SignPack(Stream stream, const PackedChunks& chunks, const SignSource& source,
              std::span<const float> scales, std::span<std::uint32_t> words) {
  TACTUS_CHECK(source.input.size() == source.error.size());
  TACTUS_CHECK(scales.size() == chunks.table.segments());
  Launch(stream, {.blocks = chunks.table.chunks.size()}, SignPackKernel, TableOf(chunks),
         SignViews{.input = source.input.data(), .error = source.error.data()}, scales.data(),
         words.data());
}

void SignUnpack(Stream stream, const PackedChunks& chunks, const SignMessage& message,
                std::span<float> out) {
  TACTUS_CHECK(message.scales.size() == chunks.table.segments());
  Decode<false>(stream, chunks, {.words = message.words.data(), .scales = message.scales.data()},
                out);
}

void SignAdd(Stream stream, const PackedChunks& chunks, const SignMessage& message, double weight,
             std::span<float> out) {
  TACTUS_CHECK(message.scales.size() == chunks.table.segments());
  Decode<true>(stream, chunks,
               {.words = message.words.data(), .scales = message.scales.data(), .weight = weight},
               out);
}

}  // namespace tactus::cuda::kernels
