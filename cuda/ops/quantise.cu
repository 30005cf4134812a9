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

// The rows of a Quantisation that belong to the block's chunk.
struct QuantiseRow {
  unsigned bits;
  QuantiseFactors factors;
};

// What QuantiseKernel reads besides.
struct EncodeSource {
  const float* values;
  Draws draws;
};

// What DequantiseKernel reads besides.
struct DecodeSource {
  const std::uint32_t* words;
  double weight;
};

struct QuantiseRows {
  const std::uint8_t* bits;
  const float* scales;

  __device__ QuantiseRow At(std::uint32_t segment) const {
    const unsigned own = bits[segment];
    return {.bits = own, .factors = QuantiseFactorsOf(own, scales[segment])};
  }
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

// A block a chunk, a warp a stretch: every lane packs eight elements into as many bytes as a code
// has bits, and the warp writes the words that these make side by side.
__global__ void __launch_bounds__(kThreads)
    QuantiseKernel(PackedTable table, QuantiseRows rows, EncodeSource source,
                   std::uint32_t* words) {
  __shared__ std::uint32_t staged[kThreads / kWarpThreads][kStretchWordsMax];
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const QuantiseRow row = rows.At(chunk.segment);
  if (row.bits == 0) return;
  const unsigned lane = threadIdx.x % kWarpThreads;
  std::uint32_t* const own = staged[threadIdx.x / kWarpThreads];
  auto* const bytes = reinterpret_cast<unsigned char*>(own) + lane * row.bits;
  std::uint32_t* const to = words + table.Word(chunk, row.bits);
  const std::size_t index = table.Index(chunk);
  for (unsigned begin = threadIdx.x / kWarpThreads * kStretch; begin < chunk.length;
       begin += kThreads * kGroup) {
    const unsigned i = begin + lane * kGroup;
    float x[kGroup];
    LoadEight(source.values + chunk.offset + i, CountAt(i, chunk.length), x);
    const auto quad = static_cast<std::uint32_t>((index + i) / 4);
    const PhiloxBlock draws[2] = {WordsOfQuad(source.draws, chunk.segment, quad),
                                  WordsOfQuad(source.draws, chunk.segment, quad + 1)};
    std::uint64_t eight = QuantiseEight(row.factors, row.bits, x, draws);
    for (unsigned k = 0; k < row.bits; ++k, eight >>= 8) {
      bytes[k] = static_cast<unsigned char>(eight);
    }
    __syncwarp();
    const unsigned left = chunk.length - begin;
    const auto count =
        static_cast<unsigned>(PackedWords(left < kStretch ? left : kStretch, row.bits));
    for (unsigned k = lane; k < count; k += kWarpThreads) to[begin / 32 * row.bits + k] = own[k];
    __syncwarp();
  }
}

// out <- the values; added to what is there if `add`, times the weight then.
template <bool add>
__global__ void __launch_bounds__(kThreads)
    DequantiseKernel(PackedTable table, QuantiseRows rows, DecodeSource source, float* out) {
  const SegmentChunk chunk = table.chunks[blockIdx.x];
  const QuantiseRow row = rows.At(chunk.segment);
  const std::uint64_t begin = table.first_words[chunk.segment];
  const std::uint64_t count = table.first_words[chunk.segment + 1] - begin;
  const double step = add ? source.weight * row.factors.decode : row.factors.decode;
  const std::size_t index = table.Index(chunk);
  for (unsigned i = threadIdx.x * kGroup; i < chunk.length; i += kThreads * kGroup) {
    float* const to = out + chunk.offset + i;
    const unsigned elements = CountAt(i, chunk.length);
    const std::uint64_t eight =
        row.bits == 0 ? 0 : ReadEight(source.words + begin, count, row.bits, (index + i) / kGroup);
    float x[kGroup] = {};
    if (add) LoadEight(to, elements, x);
    for (unsigned k = 0; k < kGroup; ++k) {
      const std::int32_t value = row.bits == 0 ? 0 : ValueInEight(eight, row.bits, k);
      x[k] = add ? x[k] + StepTimes(step, value) : StepTimes(step, value);
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
         EncodeSource{.values = source.values.data(), .draws = source.draws}, words.data());
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
