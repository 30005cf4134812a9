#include "cuda/ops/round_gate.h"

#include "base/check.h"
#include "cuda/ops/round_gate_element.h"

namespace tactus::cuda::host {

void GateRound(const RoundGate& round, const RoundFacts& facts, std::span<double> gate) {
  TACTUS_CHECK(facts.norm2.size() == 1 && facts.samples.size() == 1 &&
               facts.nonfinite.size() == 1 && gate.size() == kRoundGateLength);
  const auto* const lost = static_cast<const volatile std::uint32_t*>(facts.lost);
  RoundGateElement(round,
                   {.norm2 = facts.norm2.front(),
                    .samples = facts.samples.front(),
                    .nonfinite = facts.nonfinite.front(),
                    .lost = lost != nullptr && *lost != 0},
                   gate.data());
}

}  // namespace tactus::cuda::host
