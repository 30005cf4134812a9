#include "cuda/ops/step_gate.h"

#include "base/check.h"
#include "cuda/ops/step_gate_element.h"

namespace tactus::cuda::host {

void Gate(const StepGate& step, std::span<const double> norm2, std::span<double> gate) {
  TACTUS_CHECK(norm2.size() == 1 && gate.size() == kGateLength);
  GateElement(step, norm2.front(), gate.data());
}

}  // namespace tactus::cuda::host
