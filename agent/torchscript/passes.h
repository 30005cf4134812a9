// Passes over samples: what a step's arithmetic is made of, between the model and who cuts steps
// into pieces that fit the device's memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "agent/torchscript/gradient_intake.h"
#include "agent/torchscript/reader.h"
#include "agent/torchscript/sample_weights.h"
#include "cuda/device.h"

namespace tactus::torchscript {

// Told during a pass: the segment's gradient will not change in it any more.
using SegmentReady = std::function<void(std::size_t segment)>;

// One pass computes the gradients of some samples, which it reads. One thread.
class Passes {
 public:
  virtual ~Passes() = default;

  // As Model's TryOut, of the samples of the given indices.
  virtual absl::Status TryOut(std::span<const std::uint64_t> indices) = 0;

  // As Model's ForwardBackward, whose gradients are added to the sum of them. `ready`, if set, is
  // called once for each segment whose gradient waits to be brought (GradientIntake::Bring). `next`
  // are the samples of the pass that probably follows, empty: not known.
  virtual absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                                       std::span<const std::uint64_t> next,
                                       const SegmentReady& ready) = 0;

  // A sum of gradients begins, by the next pass. Remembers the sum of losses as it is.
  virtual void BeginSum() = 0;
  // It begins again, and the sum of losses becomes what it was.
  virtual void GoBack() = 0;
};

// What passes are made of; outlives them.
struct PassParts {
  model::Model& model;  // bound to `sums`
  ExampleReader& reader;
  cuda::Device& device;
  PassSums& sums;
  GradientIntake& intake;  // into `sums`
  SampleWeights& weights;
};

std::unique_ptr<Passes> MakePasses(const PassParts& parts);

}  // namespace tactus::torchscript
