// Stochastic gradient descent with momentum and weight decay, fused over a flat buffer.

#pragma once

#include <span>

#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Scalars of one SGD step.
struct SgdStep {
  float learning_rate = 0;   // >= 0
  float momentum = 0;        // in [0, 1)
  float weight_decay = 0;    // >= 0, coupled: added to the gradient
  float gradient_scale = 1;  // turns the sum in the gradient buffer into a (clipped) mean
  bool nesterov = false;     // requires momentum > 0
  // Null, or a row of StepGate in the buffers' memory: shut, the step changes nothing; open, its
  // scale takes the place of gradient_scale.
  const double* gate = nullptr;
};

namespace host {

// One step, as PyTorch's torch.optim.SGD with dampening 0:
//
//   g <- gradient_scale * gradient + weight_decay * p
//   m <- momentum * m + g                    (m starts at zero, so the first step gives m = g)
//   d <- g + momentum * m if nesterov, else m
//   p <- p - learning_rate * d
//
// parameters, gradients: [n]; momentum_buffer: [n], or empty when momentum = 0. They do not
// overlap; the gradients are left as they are. Tolerance against a twin: none, bit-identical (every
// operation rounded once, no fused multiply-add).
//
// Source: [pytorch] torch.optim.SGD, documentation of version 1.13.
void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
         std::span<float> momentum_buffer);

}  // namespace host

namespace kernels {

// The host's step, queued on `stream`, over device memory.
void Sgd(Stream stream, const SgdStep& step, std::span<const float> gradients,
         std::span<float> parameters, std::span<float> momentum_buffer);

}  // namespace kernels
}  // namespace tactus::cuda
