// One round's gate, for the host and the kernel.

#pragma once

#include "cuda/ops/host_device.h"
#include "cuda/ops/round_gate.h"

namespace tactus::cuda {

// The facts as the element takes them.
struct RoundNumbers {
  double norm2 = 0;
  float samples = 0;
  float nonfinite = 0;
  bool lost = false;
};

TACTUS_HOST_DEVICE inline void RoundGateElement(const RoundGate& round, const RoundNumbers& facts,
                                                double* gate) {
  const double mean_norm2 = facts.norm2 / (round.divisor * round.divisor);
  const double zero_if_finite = mean_norm2 - mean_norm2;
  const bool expected = round.samples > 0 && facts.samples == round.samples;
  const bool open = !facts.lost && expected && facts.nonfinite == 0 && zero_if_finite == 0;
  gate[kRoundGateLost] = facts.lost ? 1 : 0;
  gate[kGateOpen] = open ? 1 : 0;
  gate[kGateScale] = open ? ClippedScale(round.divisor, mean_norm2, round.clip_norm) : 0;
}

}  // namespace tactus::cuda
