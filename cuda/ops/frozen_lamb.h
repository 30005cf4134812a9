// LAMB where only the momentum is known, as its signs travel: the second moment is frozen, and so
// is every segment's ratio, which a fresh second moment corrects.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/lamb.h"
#include "cuda/ops/segments.h"

namespace tactus::cuda {

// How far the correction of a segment's ratio may go.
struct FactorBounds {
  double min = 0.5;        // (0, 1]
  double max = 4;          // >= 1
  double threshold = 0.1;  // (0, 1): of the one before
};

// raw, cut to [min, max] and then to last * [1 - threshold, 1 + threshold]. Where `last` is within
// [min, max], as 1 is, so is what comes out. One that is not a number is taken for min.
//
// Source: [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py.
double ClippedFactor(double raw, double last, const FactorBounds& bounds);

struct FrozenLambStep {
  LambStep lamb{};                // its bounds on the ratio are not looked at
  std::uint64_t frozen_step = 1;  // of which the second moment is, >= 1
  FactorBounds factor{};
};

// As LambBuffers.
struct FrozenLambBuffers {
  std::span<const float> gradients{};
  std::span<float> parameters{};
  std::span<float> first_moment{};
  std::span<const float> second_moment{};  // v: frozen
  std::span<float> fresh_moment{};         // w: as v where it was frozen
};

// One a segment, in the host's memory.
struct FrozenLambLayers {
  std::span<const double> ratios{};  // the frozen one, >= 0
  std::span<double> factors{};       // the last correction, 1 at first
};

namespace host {

// One step; for each segment x of the parameters, with its norms over the segment alone:
//
//   g <- gradient_scale * gradient
//   m <- beta1 m + (1 - beta1) g;   w <- beta2 w + (1 - beta2) g^2
//   d <- sqrt(v) / sqrt(1 - beta2^f) + epsilon             f: frozen_step
//   r <- sqrt(w) / sqrt(1 - beta2^t) + epsilon
//   u0 <- m / (1 - beta1^t) / d;   u <- u0 + weight_decay * x
//   phi <- max d / r over all with v > 0; 1 where there is none
//   with weight decay   o = min(1, ||u0|| / ||u||), 1 where ||u|| is 0;   phi <- phi o + 1 - o
//   factor <- ClippedFactor(phi, factor)
//   x <- x - learning_rate * ratio * factor * u
//
// Norms, phi and the factor are in float64, the rest is rounded as host::Lamb does. Padding is not
// touched. Without a twin.
//
// Source: [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py, steps 8 to 12 of section 7c of the
// specification. Differs: moments are corrected for their bias, as host::Lamb's are.
void FrozenLamb(const FrozenLambStep& step, const SegmentTable& segments,
                const FrozenLambBuffers& buffers, const FrozenLambLayers& layers);

}  // namespace host
}  // namespace tactus::cuda
