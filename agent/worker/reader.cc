#include "agent/worker/reader.h"

namespace tactus::worker {

model::Examples ExampleReader::Read(std::span<const std::uint64_t> indices) {
  inputs_.resize(indices.size() * dataset_.inputs().BytesPerSample());
  targets_.resize(indices.size() * dataset_.targets().BytesPerSample());
  dataset_.Read(indices, inputs_, targets_);
  return {.count = indices.size(),
          .input_spec = dataset_.inputs(),
          .target_spec = dataset_.targets(),
          .inputs = inputs_,
          .targets = targets_};
}

}  // namespace tactus::worker
