// Adam and AdamW, fused over a flat buffer.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Scalars of one Adam or AdamW step. In float64 where PyTorch's are: 1 - beta2 = 0.001 would lose
// 1e-5 of itself to a beta2 in float32.
struct AdamStep {
  double learning_rate = 0;  // >= 0
  double beta1 = 0.9;        // in [0, 1)
  double beta2 = 0.999;      // in [0, 1)
  float epsilon = 1e-8f;     // > 0
  double weight_decay = 0;   // >= 0
  bool decoupled =
      false;  // false: Adam, decay added to the gradient; true: AdamW, p scaled by 1 - lr wd
  float gradient_scale = 1;  // turns the sum in the gradient buffer into a (clipped) mean
  std::uint64_t step = 1;    // t, counted from 1
  // v stays as it is. In place of beta2 alone, so that every element's arithmetic is the same: what
  // the gradient's square would add is multiplied by 0 before it is made.
  bool frozen = false;
  std::uint64_t second_step = 0;  // s: t of v, where it was frozen in other steps; 0: t
  // Null, or a row of StepGate in the buffers' memory: shut, the step changes nothing; open, its
  // scale takes the place of gradient_scale.
  const double* gate = nullptr;
};

namespace host {

// One step:
//
//   g <- gradient_scale * gradient (+ weight_decay * p if not decoupled)
//   p <- p * (1 - learning_rate * weight_decay)                          if decoupled
//   m <- beta1 m + (1 - beta1) g;   v <- beta2 v + (1 - beta2) g^2
//   p <- p - learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^s) + epsilon)
//
// s = t, and v moves, but for 1-bit Adam, whose v is frozen at some step, and bits of it stay.
//
// The factors made of scalars alone (1 - beta, 1 - beta^t, 1 - learning_rate * weight_decay,
// learning_rate / (1 - beta1^t)) are computed in float64 and rounded once to float32. All spans
// [n], not overlapping; m and v start at zero. Tolerance against a twin: 2 ulp per element and step
// (division and square root are correctly rounded on both sides; the order of the scalar products
// may differ once each).
//
// Source: [pytorch] torch.optim.Adam and AdamW, documentation of version 1.13.
void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
          std::span<float> first_moment, std::span<float> second_moment);

}  // namespace host

namespace kernels {

// Flat buffers in device memory, all equally long, not overlapping.
struct AdamBuffers {
  std::span<const float> gradients{};
  std::span<float> parameters{};
  std::span<float> first_moment{};
  std::span<float> second_moment{};
};

// The host's step, queued on `stream`. Bit-identical: one function does an element on both sides.
void Adam(Stream stream, const AdamStep& step, const AdamBuffers& buffers);

}  // namespace kernels
}  // namespace tactus::cuda
