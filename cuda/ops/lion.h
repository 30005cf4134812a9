// Lion: steps by the sign of an average gradient, fused over a flat buffer.

#pragma once

#include <span>

#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Scalars of one Lion step; in float64 where their complements are taken.
struct LionStep {
  double learning_rate = 0;  // >= 0
  double beta1 = 0.9;        // in [0, 1), of the direction
  double beta2 = 0.99;       // in [0, 1), of what is kept
  double weight_decay = 0;   // >= 0, decoupled: p scaled by 1 - learning_rate * weight_decay
  float gradient_scale = 1;  // turns the sum in the gradient buffer into a (clipped) mean
  // Null, or a row of StepGate in the buffers' memory: shut, the step changes nothing; open, its
  // scale takes the place of gradient_scale.
  const double* gate = nullptr;
};

namespace host {

// One step:
//
//   g <- gradient_scale * gradient
//   c <- beta1 m + (1 - beta1) g
//   p <- p * (1 - learning_rate * weight_decay) - learning_rate * sign(c),  sign(0) = 0
//   m <- beta2 m + (1 - beta2) g                                            (m starts at zero)
//
// The factors made of scalars alone are computed in float64 and rounded once to float32. All spans
// [n], not overlapping. A NaN spoils its own p and m alone; an infinite gradient its own m.
// Tolerance against a twin: none, bit-identical (every operation rounded once, no fused
// multiply-add).
//
// Source: memory, unverified: [lion] algorithm 2.
void Lion(const LionStep& step, std::span<const float> gradients, std::span<float> parameters,
          std::span<float> momentum);

}  // namespace host

namespace kernels {

// The host's step, queued on `stream`, over device memory.
void Lion(Stream stream, const LionStep& step, std::span<const float> gradients,
          std::span<float> parameters, std::span<float> momentum);

}  // namespace kernels
}  // namespace tactus::cuda
