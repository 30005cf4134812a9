// Why a call of the CUDA runtime failed, in words, for code that does not stop the process.

#pragma once

#include <cuda_runtime.h>

#include <string>

namespace tactus::cuda {

// "cudaEventRecord: invalid resource handle"; empty on success.
inline std::string ReasonOf(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return "";
  cudaGetLastError();  // it is told here, and not once more by a later call
  return call + ": " + cudaGetErrorString(error);
}

}  // namespace tactus::cuda
