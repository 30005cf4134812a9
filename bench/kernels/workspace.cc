#include "bench/kernels/workspace.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "cuda/ops/require.cuh"

namespace tactus::bench {
namespace {

using cuda::kernels::Require;

constexpr std::size_t kAlignment = 256;
// Elements of a pattern: long enough that no warp and no block sees the same numbers twice.
constexpr std::size_t kPatternLength = 1 << 16;

std::size_t Aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Workspace::Workspace(std::size_t bytes, cuda::Stream stream) : stream_(stream), length_(bytes) {
  void* memory = nullptr;
  Require(cudaMalloc(&memory, bytes), "cudaMalloc");
  memory_ = static_cast<std::byte*>(memory);

  Rng rng(1);
  std::vector<float> normal(kPatternLength);
  std::vector<float> positive(kPatternLength);
  std::vector<std::uint16_t> halves(kPatternLength);
  std::vector<std::uint32_t> words(kPatternLength);
  for (std::size_t i = 0; i < kPatternLength; ++i) {
    normal[i] = static_cast<float>(rng.Normal());
    positive[i] = std::fabs(normal[i]);
    // Exponents that are those of normal numbers in bfloat16 and in float16, both signs.
    halves[i] = static_cast<std::uint16_t>(0x3000 + rng.Below(0x1000) + 0x8000 * rng.Below(2));
    words[i] = static_cast<std::uint32_t>(rng.Below(std::uint64_t{1} << 32));
  }
  const std::vector<double> doubles(kPatternLength, 1.0);
  normal_ = std::as_bytes(Upload(normal));
  positive_ = std::as_bytes(Upload(positive));
  halves_ = std::as_bytes(Upload(halves));
  words_ = std::as_bytes(Upload(words));
  doubles_ = std::as_bytes(Upload(doubles));
  TACTUS_CHECK(fits_);
  kept_ = used_;
}

Workspace::~Workspace() { Require(cudaFree(memory_), "cudaFree"); }

void Workspace::Reset() {
  used_ = kept_;
  fits_ = true;
}

std::span<std::byte> Workspace::Take(std::size_t bytes) {
  const std::size_t taken = Aligned(bytes);
  if (taken > length_ - used_) {
    fits_ = false;
    return {memory_, bytes};
  }
  std::byte* const start = memory_ + used_;
  used_ += taken;
  return {start, bytes};
}

void Workspace::CopyIn(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.empty()) return;
  Require(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
  Require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void Workspace::Repeat(std::span<const std::byte> pattern, std::span<std::byte> over) {
  // What is filled already is the next pattern, so that the pieces grow.
  std::span<const std::byte> from = pattern;
  for (std::size_t done = 0; done < over.size();) {
    const std::size_t length = std::min(from.size(), over.size() - done);
    Require(
        cudaMemcpyAsync(over.data() + done, from.data(), length, cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
    done += length;
    from = over.first(done);
  }
}

template <class T>
std::span<T> Workspace::TakeFilled(std::size_t n, std::span<const std::byte> pattern) {
  const std::span<std::byte> bytes = Take(n * sizeof(T));
  if (fits_) Repeat(pattern, bytes);
  return {reinterpret_cast<T*>(bytes.data()), n};
}

std::span<float> Workspace::Normal(std::size_t n) { return TakeFilled<float>(n, normal_); }
std::span<float> Workspace::Positive(std::size_t n) { return TakeFilled<float>(n, positive_); }
std::span<std::uint16_t> Workspace::Halves(std::size_t n) {
  return TakeFilled<std::uint16_t>(n, halves_);
}
std::span<std::uint32_t> Workspace::Words(std::size_t n) {
  return TakeFilled<std::uint32_t>(n, words_);
}
std::span<double> Workspace::Doubles(std::size_t n) { return TakeFilled<double>(n, doubles_); }

std::span<float> Workspace::Zero(std::size_t n) {
  const std::span<std::uint8_t> bytes = Bytes(n * sizeof(float), 0);
  return {reinterpret_cast<float*>(bytes.data()), n};
}

std::span<std::uint8_t> Workspace::Bytes(std::size_t n, std::uint8_t value) {
  const std::span<std::byte> bytes = Take(n);
  if (fits_) Require(cudaMemsetAsync(bytes.data(), value, n, stream_), "cudaMemsetAsync");
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), n};
}

SegmentedBuffer::SegmentedBuffer(std::size_t n, std::size_t segments, Workspace& workspace) {
  const std::size_t each = n / segments / cuda::kSegmentAlignment * cuda::kSegmentAlignment;
  TACTUS_CHECK(each > 0);
  table_.resize(segments);
  for (cuda::Segment& segment : table_) segment.length = each;
  cuda::AssignOffsets(table_);
  elements_ = each * segments;
  const cuda::ChunkTable chunks = cuda::ChunksOf(table_);
  chunks_ = {.chunks = workspace.Upload(chunks.chunks), .first = workspace.Upload(chunks.first)};
}

cuda::kernels::PackedChunks SegmentedBuffer::Packed(unsigned bits, Workspace& workspace) const {
  return {.table = chunks_, .first_words = workspace.Upload(cuda::FirstWords(table_, bits))};
}

}  // namespace tactus::bench
