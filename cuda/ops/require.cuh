// What becomes of a call of the CUDA runtime that fails.

#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace tactus::cuda::kernels {

// Stops the process, naming the call and CUDA's reason: an operation that could not be queued has
// no result, and the buffers it was to change are no longer what the others hold.
inline void Require(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cuda: %s: %s (%s)\n", call, cudaGetErrorString(error),
               cudaGetErrorName(error));
  std::abort();
}

}  // namespace tactus::cuda::kernels
