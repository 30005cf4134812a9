#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "agent/data/field_error.h"
#include "agent/model/torch_device.h"

namespace tactus::model {

absl::StatusOr<c10::Stream> OpenCudaStream(unsigned index, cuda::Stream stream) {
  const unsigned count = static_cast<unsigned>(c10::cuda::device_count());
  if (index >= count) {
    return data::AtField(
        "workers.device",
        absl::NotFoundError("cuda:" + std::to_string(index) + " is not there; libtorch sees " +
                            std::to_string(count) + " CUDA devices"));
  }
  const auto device = static_cast<c10::DeviceIndex>(index);
  if (stream == nullptr) return c10::cuda::getDefaultCUDAStream(device).unwrap();
  return c10::cuda::getStreamFromExternal(stream, device).unwrap();
}

void ReleaseCudaCache() { c10::cuda::CUDACachingAllocator::emptyCache(); }

}  // namespace tactus::model
