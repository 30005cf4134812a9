#include <cstddef>

#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/rows.h"

namespace tactus::cuda::kernels {
namespace {

// to[i] <- Body::Of(i) for i in [0, n), one thread an element.
template <class Body, class To>
__global__ void __launch_bounds__(kThreads) RowKernel(Body body, To* to, std::size_t n) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < n) to[i] = body.Of(i);
}

template <class Body, class To>
void SweepRow(Stream stream, const Body& body, std::span<To> to) {
  Launch(stream, {.blocks = BlocksFor(to.size(), kThreads)}, RowKernel<Body, To>, body, to.data(),
         to.size());
}

struct AddBody {
  const double* lower;
  const double* higher;
  __device__ double Of(std::size_t i) const { return lower[i] + higher[i]; }
};

struct WidenBody {
  const float* from;
  __device__ double Of(std::size_t i) const { return from[i]; }
};

struct NarrowBody {
  const double* from;
  __device__ float Of(std::size_t i) const { return static_cast<float>(from[i]); }
};

// One block. Counts are whole numbers, so that the order of their sum does not matter.
__global__ void __launch_bounds__(kThreads)
    CountNonFiniteKernel(const double* values, std::size_t n, double* count) {
  double found[1] = {};
  for (std::size_t i = threadIdx.x; i < n; i += kThreads) {
    if (values[i] - values[i] != 0) ++found[0];
  }
  AddOverBlock(found);
  if (threadIdx.x == 0) *count += found[0];
}

}  // namespace

void AddRows(Stream stream, std::span<const double> lower, std::span<const double> higher,
             std::span<double> out) {
  TACTUS_CHECK(lower.size() == out.size() && higher.size() == out.size());
  SweepRow(stream, AddBody{.lower = lower.data(), .higher = higher.data()}, out);
}

void Widen(Stream stream, std::span<const float> from, std::span<double> to) {
  TACTUS_CHECK(from.size() == to.size());
  SweepRow(stream, WidenBody{.from = from.data()}, to);
}

void Narrow(Stream stream, std::span<const double> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  SweepRow(stream, NarrowBody{.from = from.data()}, to);
}

void CountNonFinite(Stream stream, std::span<const double> values, std::span<double> count) {
  TACTUS_CHECK(count.size() == 1);
  Launch(stream, {.blocks = 1}, CountNonFiniteKernel, values.data(), values.size(), count.data());
}

}  // namespace tactus::cuda::kernels
