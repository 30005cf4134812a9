#include "cuda/ops/step_gate.h"

#include "base/check.h"
#include "cuda/ops/step_gate_element.h"

namespace tactus::cuda::host {

void Gate(const StepGate& step, const OwnSums& own, std::span<double> gate) {
  TACTUS_CHECK(own.norm2.size() == 1 && own.loss.size() == 1 && gate.size() == kGateLength);
  GateElement(step, own.norm2.front(), own.loss.front(), gate.data());
}

}  // namespace tactus::cuda::host
