#include "cuda/ops/sgd.h"

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

// One stretch of the flat buffers.
struct Stretch {
  const float* gradients;
  float* parameters;
  float* momentum_buffer;
  std::size_t length;
};

TACTUS_VECTOR_CLONES void PlainLoop(const SgdStep& step, const Stretch& stretch) {
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  const float rate = step.learning_rate;
  const float decay = step.weight_decay;
  const float scale = step.gradient_scale;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    const float gradient = scale * gradients[i] + decay * parameters[i];
    parameters[i] -= rate * gradient;
  }
}

TACTUS_VECTOR_CLONES void MomentumLoop(const SgdStep& step, const Stretch& stretch) {
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict momentum_buffer = stretch.momentum_buffer;
  const float rate = step.learning_rate;
  const float decay = step.weight_decay;
  const float scale = step.gradient_scale;
  const float momentum = step.momentum;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    const float gradient = scale * gradients[i] + decay * parameters[i];
    const float direction = momentum * momentum_buffer[i] + gradient;
    momentum_buffer[i] = direction;
    parameters[i] -= rate * direction;
  }
}

TACTUS_VECTOR_CLONES void NesterovLoop(const SgdStep& step, const Stretch& stretch) {
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict momentum_buffer = stretch.momentum_buffer;
  const float rate = step.learning_rate;
  const float decay = step.weight_decay;
  const float scale = step.gradient_scale;
  const float momentum = step.momentum;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    const float gradient = scale * gradients[i] + decay * parameters[i];
    const float velocity = momentum * momentum_buffer[i] + gradient;
    momentum_buffer[i] = velocity;
    parameters[i] -= rate * (gradient + momentum * velocity);
  }
}

}  // namespace

void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
         std::span<float> momentum_buffer) {
  TACTUS_CHECK(gradients.size() == parameters.size());
  TACTUS_CHECK(!step.nesterov || step.momentum > 0);
  const Stretch stretch{gradients.data(), parameters.data(), momentum_buffer.data(),
                        parameters.size()};
  if (step.momentum == 0 && momentum_buffer.empty()) return PlainLoop(step, stretch);
  TACTUS_CHECK(momentum_buffer.size() == parameters.size());
  if (step.nesterov) return NesterovLoop(step, stretch);
  MomentumLoop(step, stretch);
}

}  // namespace tactus::cuda::host
