// The double of the CUDA runtime, with what the code around NCCL asks of it besides.

#pragma once

#include "tests/support/cuda_double/cuda_runtime.h"

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
};

struct cudaPointerAttributes {
  cudaMemoryType type;
};

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address);
