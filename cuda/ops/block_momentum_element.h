// One element of a window's end, for the host's loop and the kernel.

#pragma once

#include "cuda/ops/block_momentum.h"
#include "cuda/ops/host_device.h"
#include "cuda/ops/round_gate.h"

namespace tactus::cuda {

// The scalars of a step, rounded to what the elements are multiplied by.
struct BlockMomentumFactors {
  bool plain = true;   // without momentum
  float scale = 1;     // of the delta; plain alone
  float momentum = 0;  // of u
  float gradient = 0;  // of the delta, on its way into u: -scale / rate
  float rate = 0;      // of u, on its way into x: -rate
};

TACTUS_HOST_DEVICE inline BlockMomentumFactors FactorsOf(const BlockMomentumStep& step) {
  const bool plain = step.momentum == 0 || step.learning_rate == 0;
  return {.plain = plain,
          .scale = static_cast<float>(step.scale),
          .momentum = static_cast<float>(step.momentum),
          .gradient = plain ? 0 : static_cast<float>(-step.scale / step.learning_rate),
          .rate = static_cast<float>(-step.learning_rate)};
}

// Whether the group was lost in the window's combination.
TACTUS_HOST_DEVICE inline bool LostBehind(const BlockMomentumStep& step) {
  return step.gate != nullptr && step.gate[kRoundGateLost] != 0;
}

// Whether the window is kept, and then its scale; without a gate it is, by the scale it has.
TACTUS_HOST_DEVICE inline bool Through(BlockMomentumStep& step) {
  if (step.gate == nullptr) return true;
  step.scale = step.gate[kGateScale];
  return step.gate[kGateOpen] != 0;
}

TACTUS_HOST_DEVICE inline float PlainElement(const BlockMomentumFactors& factors, float start,
                                             float delta) {
  return start + factors.scale * delta;
}

// Returns the new parameter and changes u.
TACTUS_HOST_DEVICE inline float MomentumElement(const BlockMomentumFactors& factors, float start,
                                                float delta, float& u) {
  const float kept = factors.momentum * u;
  u = kept + factors.gradient * delta;
  return start + factors.rate * u;
}

}  // namespace tactus::cuda
