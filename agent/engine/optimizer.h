// The optimizer: its options, its state, and one step on flat buffers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "cuda/device.h"

namespace tactus::engine {

// Stochastic gradient descent; ranges as in proto/tactus/v1/spec.proto.
struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// Adam, or AdamW when `decoupled`.
struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions>;

// Holds the state (momentum, moments, step count), which is equal on all members because all take
// the same steps. Runs on the engine's thread.
class Optimizer {
 public:
  // length [elements] of the parameters.
  Optimizer(const OptimizerOptions& options, cuda::Device& device, std::size_t length);

  // One step with the gradient `gradient_scale * gradients`.
  void Step(std::span<const float> gradients, double gradient_scale, std::span<float> parameters);

  std::uint64_t steps() const { return steps_; }

 private:
  const OptimizerOptions options_;
  cuda::Device& device_;
  std::uint64_t steps_ = 0;
  cuda::Buffer momentum_;  // SGD: empty without momentum; Adam: first moment
  cuda::Buffer second_;    // Adam alone
};

}  // namespace tactus::engine
