#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/packed_table.cuh"
#include "cuda/ops/quantise.h"
#include "cuda/ops/quantise_element.h"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

constexpr unsigned kGroup = kQuantiseGroup;
// What a warp does at a time: kGroup elements a lane, which fill 8 words a bit.
constexpr unsigned kStretch = kWarpThreads * kGroup;
constexpr unsigned kStretchWordsMax = kStretch * 8 / 32;
constexpr unsigned kCodesMax = 1 << 8;

// What QuantiseKernel reads besides.
struct EncodeSource {
  const float* values;
  Draws draws;
  std::uint32_t first_segment;
};

// What DequantiseKernel reads besides.
struct DecodeSource {
  const std::uint32_t* words;
  double weight;
};

struct QuantiseRows {
  const std::uint8_t* bits;
  const float* scales;
};

QuantiseRows RowsOf(const Quantisation& quantisation, const PackedChunks& chunks) {
  TACTUS_CHECK(quantisation.bits.size() == chunks.table.segments());
  TACTUS_CHECK(quantisation.scales.size() == chunks.table.segments());
  return {.bits = quantisation.bits.data(), .scales = quantisation.scales.data()};
}

// x <- from[0 .. count), and zeros behind; count <= 8.
__device__ inline void LoadEight(const float* from, unsigned count, float (&x)[kGroup]) {
  if (count >= kGroup && PhaseOf(from) == 0) {
    const Pack<4> low = Load<4>(from);
    const Pack<4> high = Load<4>(from + 4);
    for (unsigned k = 0; k < 4; ++k) {
      x[k] = low.at[k];
      x[4 + k] = high.at[k];
    }
  } else {
    for (unsigned k = 0; k < kGroup; ++k) x[k] = k < count ? from[k] : 0;
  }
}

__device__ inline void StoreEight(const float (&x)[kGroup], unsigned count, float* to) {
  if (count >= kGroup && PhaseOf(to) == 0) {
    Store(to, Pack<4>{{x[0], x[1], x[2], x[3]}});
    Store(to + 4, Pack<4>{{x[4], x[5], x[6], x[7]}});
  } else {
    for (unsigned k = 0; k < kGroup; ++k) {
      if (k < count) to[k] = x[k];
    }
  }
}

// How many of the eight elements from i on are below `length`.
__device__ inline unsigned CountAt(unsigned i, unsigned length) {
  if (i >= length) return 0;
  return length - i < kGroup ? length - i : kGroup;
}

// to[0 .. bits) <- the bytes of eight codes, in units that lie as they have to for so many bits.
template <class Unit>
__device__ inline void PutBytes(std::uint64_t eight, unsigned bits, unsigned char* to) {
#pragma unroll 1
  for (unsigned k = 0; k < bits; k += sizeof(Unit), eight >>= 8 * sizeof(Unit)) {
    *reinterpret_cast<Unit*>(to + k) = static_cast<Unit>(eight);
  }
}

__device__ inline void PutEight(std::uint64_t eight, unsigned bits, unsigned char* to) {
  if (bits % 4 == 0) {
    PutBytes<std::uint32_t>(eight, bits, to);
  } else if (bits % 2 == 0) {
    PutBytes<std::uint16_t>(eight, bits, to);
  } else {
    PutBytes<std::uint8_t>(eight, bits, to);
  }
}

// A block a chunk, a warp a stretch: every lane packs eight elements into as many bytes as a code
// has bits, and the warp writes the words that these make side by side.
__global__ void __launch_bounds__(kThreads)
    QuantiseKernel(PackedTable table, QuantiseRows rows, EncodeSource source,
                   std::uint32_t* words) {
  __shared__ std::uint32_t staged[kThreads / kWarpThreads][kStretchWordsMax];
  __shared__ QuantiseFactors shared_factors[1];
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const unsigned bits = rows.bits[chunk.segment];
  if (bits == 0) return;
  // By one warp: it takes a division of 64 bits.
  if (threadIdx.x == 0) shared_factors[0] = QuantiseFactorsOf(bits, rows.scales[chunk.segment]);
  __syncthreads();
  const QuantiseFactors factors = shared_factors[0];
  const unsigned lane = threadIdx.x % kWarpThreads;
  std::uint32_t* const own = staged[threadIdx.x / kWarpThreads];
  auto* const bytes = reinterpret_cast<unsigned char*>(own) + lane * bits;
  std::uint32_t* const to = words + table.Word(chunk, bits);
  const std::size_t index = table.Index(chunk);
  const std::uint32_t segment = source.first_segment + chunk.segment;
  for (unsigned begin = threadIdx.x / kWarpThreads * kStretch; begin < chunk.length;
       begin += kThreads * kGroup) {
    const unsigned i = begin + lane * kGroup;
    float x[kGroup];
    LoadEight(source.values + chunk.offset + i, CountAt(i, chunk.length), x);
    const auto quad = static_cast<std::uint32_t>((index + i) / 4);
    const PhiloxBlock draws[2] = {WordsOfQuad(source.draws, segment, quad),
                                  WordsOfQuad(source.draws, segment, quad + 1)};
    PutEight(QuantiseEight(factors, bits, x, draws), bits, bytes);
    __syncwarp();
    const unsigned left = chunk.length - begin;
    const auto count = static_cast<unsigned>(PackedWords(left < kStretch ? left : kStretch, bits));
#pragma unroll 1
    for (unsigned k = lane; k < count; k += kWarpThreads) to[begin / 32 * bits + k] = own[k];
    __syncwarp();
  }
}

// decoded[code] <- what a message adds for it, of every code of `bits` bits; for no bits, of the
// code 0. Done once a block, as it takes float64. Every thread calls.
__device__ inline void DecodeAll(unsigned bits, float scale, double weight, float* decoded) {
  __shared__ double shared_step[1];
  if (threadIdx.x == 0) shared_step[0] = weight * QuantiseStepOf(bits, scale);
  __syncthreads();
  const double step = shared_step[0];
  for (unsigned code = threadIdx.x; code < 1u << bits; code += kThreads) {
    decoded[code] = StepTimes(step, bits == 0 ? 0 : CodeValue(code, bits));
  }
  __syncthreads();
}

// out <- the values; added to what is there if `add`, times the weight then.
template <bool add>
__global__ void __launch_bounds__(kThreads)
    DequantiseKernel(PackedTable table, QuantiseRows rows, DecodeSource source, float* out) {
  __shared__ float decoded[kCodesMax];
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const unsigned bits = rows.bits[chunk.segment];
  DecodeAll(bits, rows.scales[chunk.segment], add ? source.weight : 1, decoded);
  const std::uint64_t begin = table.first_words[chunk.segment];
  const std::uint64_t count = table.first_words[chunk.segment + 1] - begin;
  const std::size_t index = table.Index(chunk);
  for (unsigned i = threadIdx.x * kGroup; i < chunk.length; i += kThreads * kGroup) {
    float* const to = out + chunk.offset + i;
    const unsigned elements = CountAt(i, chunk.length);
    const std::uint64_t eight =
        bits == 0 ? 0 : ReadEight(source.words + begin, count, bits, (index + i) / kGroup);
    float x[kGroup] = {};
    if (add) LoadEight(to, elements, x);
    for (unsigned k = 0; k < kGroup; ++k) {
      const float value = decoded[CodeInEight(eight, bits, k)];
      x[k] = add ? x[k] + value : value;
    }
    StoreEight(x, elements, to);
  }
}

template <bool add>
void Decode(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
            const WeightedMessage& message, std::span<float> out) {
  Launch(stream, {.blocks = chunks.table.chunks.size()}, DequantiseKernel<add>, TableOf(chunks),
         RowsOf(quantisation, chunks),
         DecodeSource{.words = message.words.data(), .weight = message.weight}, out.data());
}

}  // namespace

void Quantise(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
              const QuantiseSource& source, std::span<std::uint32_t> words) {
  Launch(stream, {.blocks = chunks.table.chunks.size()}, QuantiseKernel, TableOf(chunks),
         RowsOf(quantisation, chunks),
         EncodeSource{.values = source.values.data(),
                      .draws = source.draws,
                      .first_segment = source.first_segment},
         words.data());
}

void Dequantise(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
                std::span<const std::uint32_t> words, std::span<float> out) {
  Decode<false>(stream, chunks, quantisation, {.words = words}, out);
}

void DequantiseAdd(Stream stream, const PackedChunks& chunks, const Quantisation& quantisation,
                   const WeightedMessage& message, std::span<float> out) {
  Decode<true>(stream, chunks, quantisation, message, out);
}

}  // namespace tactus::cuda::kernels
