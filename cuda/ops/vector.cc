#include "cuda/ops/vector.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

// Interleaved sums of SquaredNorm: independent chains, so that the additions of a vector need not
// wait.
constexpr std::size_t kPartials = 16;
// Elements after which the interleaved sums are added up, so that none becomes long.
constexpr std::size_t kBlock = 65536;

TACTUS_VECTOR_CLONES void AxpyLoop(float a, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

TACTUS_VECTOR_CLONES void ScaleLoop(float a, float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= a;
}

TACTUS_VECTOR_CLONES void FillLoop(float value, float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = value;
}

// The sum of squares of x[0 .. n), n <= kBlock.
TACTUS_VECTOR_CLONES double SquaredNormOfBlock(const float* x, std::size_t n) {
  double sums[kPartials] = {};
  const std::size_t whole = n / kPartials * kPartials;
  for (std::size_t i = 0; i < whole; i += kPartials) {
    for (std::size_t k = 0; k < kPartials; ++k) {
      const double value = x[i + k];
      sums[k] += value * value;
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    const double value = x[i];
    sums[i - whole] += value * value;
  }
  double sum = 0;
  for (const double partial : sums) sum += partial;
  return sum;
}

}  // namespace

void Axpy(float a, std::span<const float> x, std::span<float> y) {
  TACTUS_CHECK(x.size() == y.size());
  AxpyLoop(a, x.data(), y.data(), x.size());
}

void Scale(float a, std::span<float> x) { ScaleLoop(a, x.data(), x.size()); }

void Fill(float value, std::span<float> x) { FillLoop(value, x.data(), x.size()); }

double SquaredNorm(std::span<const float> x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i += kBlock) {
    sum += SquaredNormOfBlock(x.data() + i, std::min(kBlock, x.size() - i));
  }
  return sum;
}

}  // namespace tactus::cuda::host
