#include "agent/data/field_error.h"
#include "agent/model/torch_device.h"

namespace tactus::model {

absl::StatusOr<c10::Stream> OpenCudaStream(unsigned index, cuda::Stream /*stream*/) {
  return data::AtField(
      "workers.device",
      absl::NotFoundError("cuda:" + std::to_string(index) +
                          " is asked for, and this worker or its libtorch was built without CUDA"));
}

void ReleaseCudaCache() {}

}  // namespace tactus::model
