// What the members of a simulated job train: the place of model and data.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "agent/engine/round_engine.h"
#include "cuda/ops/segments.h"

namespace tactus::simulator {

// Gradients and losses as functions of parameters and samples, the same for every member, so that
// one object serves all members of a job. Deterministic: equal arguments give equal bits. One
// thread.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual const cuda::SegmentTable& segments() const = 0;
  virtual std::uint64_t train_samples() const = 0;  // in an epoch, >= 1

  // The parameters to start with. parameters [cuda::FlatLength(segments())]
  virtual void Initialise(std::uint64_t seed, std::span<float> parameters) const = 0;

  // Adds the sum of the samples' gradients to `gradients` and returns the sum of their losses.
  // batch.indices is not empty; both spans [cuda::FlatLength(segments())].
  virtual double ForwardBackward(const engine::Batch& batch, std::span<const float> parameters,
                                 std::span<float> gradients) = 0;

  // Mean loss over the validation samples; nothing when there are none.
  virtual std::optional<double> Validate(std::span<const float> parameters) = 0;
};

}  // namespace tactus::simulator
