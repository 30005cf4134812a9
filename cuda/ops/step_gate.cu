#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/step_gate.h"
#include "cuda/ops/step_gate_element.h"

namespace tactus::cuda::kernels {
namespace {

__global__ void GateKernel(StepGate step, const double* norm2, double* gate) {
  if (threadIdx.x == 0) GateElement(step, *norm2, gate);
}

}  // namespace

void Gate(Stream stream, const StepGate& step, std::span<const double> norm2,
          std::span<double> gate) {
  TACTUS_CHECK(norm2.size() == 1 && gate.size() == kGateLength);
  Launch(stream, {.blocks = 1, .threads = 32}, GateKernel, step, norm2.data(), gate.data());
}

}  // namespace tactus::cuda::kernels
