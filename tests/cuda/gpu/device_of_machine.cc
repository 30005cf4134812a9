// The device of the twin tests, where it is the machine's first.

#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {

std::string WhyNoDevice(const std::string&) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count > 0 ? "" : "the driver finds no device";
}

}  // namespace tactus::cuda
