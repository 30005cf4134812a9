// Why a call of the CUDA runtime failed, in words, for code that does not stop the process.

#pragma once

#include <cuda_runtime.h>

#include <string>

#include "cuda/lost_device.cuh"

namespace tactus::cuda {

// "cudaEventRecord: invalid resource handle"; empty on success.
inline std::string ReasonOf(cudaError_t error, const std::string& call) {
  if (Noted(error) == cudaSuccess) return "";
  cudaGetLastError();  // it is told here; of a lost device all calls tell it, whatever is done
  return call + ": " + cudaGetErrorString(error);
}

}  // namespace tactus::cuda
