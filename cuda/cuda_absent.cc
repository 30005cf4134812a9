// The CUDA device of a build without the CUDA toolkit.

#include <string>

#include "cuda/device.h"

namespace tactus::cuda {

bool KnowsCuda() { return false; }

OpenedDevice OpenCudaDevice(int index) {
  return {.device = nullptr,
          .reason = "device 'cuda:" + std::to_string(index) +
                    "' cannot be used: this build has no CUDA support; use cpu:N"};
}

}  // namespace tactus::cuda
