// How a kernel is queued. An ordinary call instead of <<<>>>, so that a .cu file is C++ and the
// tests' double of the CUDA runtime can compile it.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/require.cuh"
#include "cuda/ops/stream.h"

namespace tactus::cuda::kernels {

// Threads a block of every kernel that has no reason for another number: eight blocks fill a
// multiprocessor.
inline constexpr unsigned kThreads = 256;

// The grid of a launch.
struct Shape {
  std::size_t blocks = 0;       // 0: nothing is queued
  unsigned threads = kThreads;  // a block, 1 to 1024
};

// The number of blocks of `per_block` elements that n elements need.
constexpr std::size_t BlocksFor(std::size_t n, std::size_t per_block) {
  return n / per_block + (n % per_block != 0 ? 1 : 0);
}

// Queues `kernel` on `stream`.
template <class... Parameters, class... Arguments>
void Launch(Stream stream, Shape shape, void (*kernel)(Parameters...), Arguments... arguments) {
  constexpr std::size_t kBlocksMax = 0x7fffffff;
  if (shape.blocks == 0) return;
  TACTUS_CHECK(shape.blocks <= kBlocksMax);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(shape.threads);
  config.stream = stream;
  Require(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
          "cudaLaunchKernelEx");
}

}  // namespace tactus::cuda::kernels
