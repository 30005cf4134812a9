#include "base/check.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/round_gate.h"
#include "cuda/ops/round_gate_element.h"

namespace tactus::cuda::kernels {
namespace {

// The facts as pointers.
struct RoundViews {
  const double* norm2;
  const float* samples;
  const float* nonfinite;
  const volatile std::uint32_t* lost;  // the host's memory: read anew, not from a cache
};

__global__ void GateRoundKernel(RoundGate round, RoundViews views, double* gate) {
  if (threadIdx.x != 0) return;
  RoundGateElement(round,
                   {.norm2 = *views.norm2,
                    .samples = *views.samples,
                    .nonfinite = *views.nonfinite,
                    .lost = views.lost != nullptr && *views.lost != 0},
                   gate);
}

}  // namespace

void GateRound(Stream stream, const RoundGate& round, const RoundFacts& facts,
               std::span<double> gate) {
  TACTUS_CHECK(facts.norm2.size() == 1 && facts.samples.size() == 1 &&
               facts.nonfinite.size() == 1 && gate.size() == kRoundGateLength);
  const RoundViews views{.norm2 = facts.norm2.data(),
                         .samples = facts.samples.data(),
                         .nonfinite = facts.nonfinite.data(),
                         .lost = facts.lost};
  Launch(stream, {.blocks = 1, .threads = 32}, GateRoundKernel, round, views, gate.data());
}

}  // namespace tactus::cuda::kernels
