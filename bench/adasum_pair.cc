// Bytes a second of Adasum's pair operation on one core, against memcpy in the same run.
//
// Counted are bytes read and written: the sums read both operands, the combination reads both and
// writes a third buffer; memcpy reads one and writes one. The two alternate, so that what disturbs
// the machine disturbs both.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "cuda/ops/adasum.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kKibibyte = 1024;
constexpr std::size_t kMebibyte = 1024 * kKibibyte;
constexpr std::size_t kSizes[] = {64 * kKibibyte, kMebibyte, 16 * kMebibyte, 64 * kMebibyte};
// Bytes of one operand that a repetition goes through, in as many calls as the size needs.
constexpr std::size_t kBytesPerRepetition = 256 * kMebibyte;
constexpr int kRepetitions = 21;

struct Spread {
  double min = 0;
  double median = 0;
  double max = 0;
};

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {.min = values.front(), .median = values[values.size() / 2], .max = values.back()};
}

// Operands and result, none of which the compiler may assume to be unused.
struct Buffers {
  std::vector<float> a{};
  std::vector<float> b{};
  std::vector<float> out{};
};

Buffers RandomBuffers(std::size_t bytes) {
  Rng rng(bytes);
  Buffers buffers;
  buffers.a.resize(bytes / sizeof(float));
  buffers.b.resize(bytes / sizeof(float));
  buffers.out.resize(bytes / sizeof(float));
  for (float& value : buffers.a) value = static_cast<float>(rng.Normal());
  for (float& value : buffers.b) value = static_cast<float>(rng.Normal());
  return buffers;
}

void Copy(Buffers& buffers) {
  std::memcpy(buffers.out.data(), buffers.a.data(), buffers.a.size() * sizeof(float));
  asm volatile("" : : "r"(buffers.out.data()) : "memory");
}

void Pair(Buffers& buffers) {
  const AdasumPair pair{.a = buffers.a, .b = buffers.b};
  host::Combine(host::CoefficientsOf(host::PairSums(pair)), pair, buffers.out);
  asm volatile("" : : "r"(buffers.out.data()) : "memory");
}

// Bytes a second of `calls` calls, each of which moves so many bytes.
double BytesPerSecond(std::size_t calls, std::size_t bytes_per_call,
                      const std::function<void()>& call) {
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < calls; ++i) call();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  return static_cast<double>(calls * bytes_per_call) / took.count();
}

void Measure(std::size_t bytes) {
  Buffers buffers = RandomBuffers(bytes);
  const std::size_t calls = std::max<std::size_t>(1, kBytesPerRepetition / bytes);
  std::vector<double> copies;
  std::vector<double> pairs;
  std::vector<double> ratios;
  for (int i = 0; i < kRepetitions; ++i) {
    copies.push_back(BytesPerSecond(calls, 2 * bytes, [&] { Copy(buffers); }));
    pairs.push_back(BytesPerSecond(calls, 5 * bytes, [&] { Pair(buffers); }));
    ratios.push_back(pairs.back() / copies.back());
  }
  const Spread ratio = SpreadOf(ratios);
  std::printf("| %zu KiB | %.1f | %.1f | %.2f (%.2f to %.2f) |\n", bytes / kKibibyte,
              SpreadOf(copies).median / 1e9, SpreadOf(pairs).median / 1e9, ratio.median, ratio.min,
              ratio.max);
}

}  // namespace
}  // namespace tactus::cuda

int main() {
  std::printf("| buffer | memcpy GB/s | pair operation GB/s | ratio, median (min to max) |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (const std::size_t bytes : tactus::cuda::kSizes) tactus::cuda::Measure(bytes);
  return 0;
}
