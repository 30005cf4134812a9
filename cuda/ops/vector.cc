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

// The dot product of x[0 .. n) and y[0 .. n), n <= kBlock.
TACTUS_VECTOR_CLONES double DotOfBlock(const float* x, const float* y, std::size_t n) {
  double sums[kPartials] = {};
  const std::size_t whole = n / kPartials * kPartials;
  for (std::size_t i = 0; i < whole; i += kPartials) {
    for (std::size_t k = 0; k < kPartials; ++k) {
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    sums[i - whole] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  double sum = 0;
  for (const double partial : sums) sum += partial;
  return sum;
}

// The segment's part of the buffer, which holds all of it.
std::span<const float> PartOf(std::span<const float> buffer, const Segment& segment) {
  TACTUS_CHECK(segment.offset <= buffer.size());
  TACTUS_CHECK(segment.length <= buffer.size() - segment.offset);
  return buffer.subspan(segment.offset, segment.length);
}

}  // namespace

void Axpy(float a, std::span<const float> x, std::span<float> y) {
  TACTUS_CHECK(x.size() == y.size());
  AxpyLoop(a, x.data(), y.data(), x.size());
}

void Scale(float a, std::span<float> x) { ScaleLoop(a, x.data(), x.size()); }

void Fill(float value, std::span<float> x) { std::fill(x.begin(), x.end(), value); }

double SquaredNorm(std::span<const float> x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i += kBlock) {
    sum += SquaredNormOfBlock(x.data() + i, std::min(kBlock, x.size() - i));
  }
  return sum;
}

double Dot(std::span<const float> x, std::span<const float> y) {
  TACTUS_CHECK(x.size() == y.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i += kBlock) {
    sum += DotOfBlock(x.data() + i, y.data() + i, std::min(kBlock, x.size() - i));
  }
  return sum;
}

std::vector<double> DotPerSegment(std::span<const float> x, std::span<const float> y,
                                  const SegmentTable& segments) {
  TACTUS_CHECK(x.size() == y.size());
  std::vector<double> dots;
  dots.reserve(segments.size());
  for (const Segment& segment : segments) {
    dots.push_back(Dot(PartOf(x, segment), PartOf(y, segment)));
  }
  return dots;
}

std::vector<double> SquaredNormPerSegment(std::span<const float> buffer,
                                          const SegmentTable& segments) {
  std::vector<double> norms;
  norms.reserve(segments.size());
  for (const Segment& segment : segments) norms.push_back(SquaredNorm(PartOf(buffer, segment)));
  return norms;
}

}  // namespace tactus::cuda::host
