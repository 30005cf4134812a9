#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/step_gate.h"
#include "cuda/ops/step_gate_element.h"

namespace tactus::cuda::kernels {
namespace {

__global__ void GateKernel(StepGate step, const double* norm2, const double* loss, double* gate) {
  if (threadIdx.x == 0) GateElement(step, *norm2, *loss, gate);
}

}  // namespace

void Gate(Stream stream, const StepGate& step, const OwnSums& own, std::span<double> gate) {
  TACTUS_CHECK(own.norm2.size() == 1 && own.loss.size() == 1 && gate.size() == kGateLength);
  Launch(stream, {.blocks = 1, .threads = 32}, GateKernel, step, own.norm2.data(), own.loss.data(),
         gate.data());
}

}  // namespace tactus::cuda::kernels
