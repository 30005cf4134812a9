// One gate, for the host and the kernel.

#pragma once

#include "cuda/ops/host_device.h"
#include "cuda/ops/step_gate.h"

namespace tactus::cuda {

TACTUS_HOST_DEVICE inline void GateElement(const StepGate& step, double norm2, double loss,
                                           double* gate) {
  const double mean_norm2 = norm2 / (step.samples * step.samples);
  const bool open = mean_norm2 - mean_norm2 == 0 && loss - loss == 0;  // both finite
  gate[kGateOpen] = open ? 1 : 0;
  if (!open) {
    const double zero = 0;
    gate[kGatePoison] = zero / zero;
    return;
  }
  gate[kGateScale] = ClippedScale(step.samples, mean_norm2, step.clip_norm);
  gate[kGateNorm2Sum] += mean_norm2;
}

}  // namespace tactus::cuda
