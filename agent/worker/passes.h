// Passes over samples: what a step's arithmetic is made of, between the model and who cuts steps
// into pieces that fit the device's memory.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "agent/worker/reader.h"
#include "cuda/device.h"

namespace tactus::worker {

// One pass computes the gradients of some samples, which it reads. One thread.
class Passes {
 public:
  virtual ~Passes() = default;

  // As Model's TryOut, of the samples of the given indices.
  virtual absl::Status TryOut(std::span<const std::uint64_t> indices) = 0;

  // As Model's ForwardBackward; `next` are the samples of the pass that probably follows, empty:
  // not known.
  virtual absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                                       std::span<const std::uint64_t> next,
                                       const model::SegmentReady& ready) = 0;

  // Remembers the sum of losses as it is, for GoBack.
  virtual void KeepLosses() = 0;
  // The gradients become zero, the sum of losses what was kept last.
  virtual void GoBack() = 0;
};

// What a model is bound to. They may be exchanged between passes, with the model bound anew.
struct PassSums {
  cuda::Buffer gradients{};
  cuda::Sums losses{};  // one number
};

// Passes of a model, bound to `sums`. What it is given outlives it.
std::unique_ptr<Passes> MakePasses(model::Model& model, ExampleReader& reader, cuda::Device& device,
                                   PassSums& sums);

}  // namespace tactus::worker
