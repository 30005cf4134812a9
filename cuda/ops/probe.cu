#include <cuda_runtime.h>

#include "cuda/ops/probe.h"

namespace tactus::cuda::kernels {
namespace {

__global__ void NothingKernel() {}

}  // namespace

std::string WhyNoKernelRuns(Stream stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  cudaError_t error = cudaLaunchKernelEx(&config, NothingKernel);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return "";
  static_cast<void>(cudaGetLastError());  // it is told here, and shall not turn up elsewhere
  return cudaGetErrorString(error);
}

}  // namespace tactus::cuda::kernels
