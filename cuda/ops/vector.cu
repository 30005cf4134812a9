#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"
#include "cuda/ops/vector.h"

namespace tactus::cuda::kernels {
namespace {

struct AxpyBody {
  float a;
  const float* x;
  float* y;

  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> added = Load<width>(x + i);
    Pack<width> sum = Load<width>(y + i);
    for (int k = 0; k < width; ++k) sum.at[k] += a * added.at[k];
    Store(y + i, sum);
  }
};

struct ScaleBody {
  float a;
  float* x;

  template <int width>
  __device__ Pack<width> Read(std::size_t i) const {
    return Load<width>(x + i);
  }
  template <int width>
  __device__ void Write(std::size_t i, Pack<width> pack) const {
    for (int k = 0; k < width; ++k) pack.at[k] *= a;
    Store(x + i, pack);
  }
};

struct FillBody {
  float value;
  float* x;

  template <int width>
  __device__ Pack<width> Read(std::size_t /*i*/) const {
    Pack<width> pack;
    for (int k = 0; k < width; ++k) pack.at[k] = value;
    return pack;
  }
  template <int width>
  __device__ void Write(std::size_t i, const Pack<width>& pack) const {
    Store(x + i, pack);
  }
};

struct SquaredNormBody {
  static constexpr int kSums = 1;
  const float* x;

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, x + offset);
  }
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    const Pack<width> pack = Load<width>(x + i);
    for (int k = 0; k < width; ++k) sums[0].Add(pack.at[k], pack.at[k]);
  }
  __device__ static bool Hold(const TwoFloat (&sums)[kSums]) { return sums[0].HoldsSquares(); }
};

}  // namespace

void Axpy(Stream stream, float a, std::span<const float> x, std::span<float> y) {
  TACTUS_CHECK(x.size() == y.size());
  Sweep(stream, CutOf(x.size(), {x.data(), y.data()}),
        AxpyBody{.a = a, .x = x.data(), .y = y.data()});
}

void Scale(Stream stream, float a, std::span<float> x) {
  SweepPairs(stream, CutOf(x.size(), {x.data()}), ScaleBody{.a = a, .x = x.data()});
}

void Fill(Stream stream, float value, std::span<float> x) {
  SweepPairs(stream, CutOf(x.size(), {x.data()}), FillBody{.value = value, .x = x.data()});
}

void Copy(Stream stream, std::span<const float> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  if (from.empty()) return;
  Require(
      cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToDevice, stream),
      "cudaMemcpyAsync");
}

void SquaredNorm(Stream stream, std::span<const float> x, const SumsInto& into) {
  SumOfBuffer(stream, SquaredNormBody{.x = x.data()}, x.size(), into);
}

void AddSquaredNorm(Stream stream, std::span<const float> x, const SumsInto& into) {
  SumOfBuffer<true>(stream, SquaredNormBody{.x = x.data()}, x.size(), into);
}

}  // namespace tactus::cuda::kernels
