#include "policies/axis_policy.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tactus::policies {

void Synchronize(Plan& plan, Synchronization synchronization, std::uint32_t period) {
  const std::uint64_t step =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  const std::uint64_t most =
      std::min<std::uint64_t>(kPeriodMax, kRoundSamplesMax / std::max<std::uint64_t>(step, 1));
  plan.synchronization = synchronization;
  if (synchronization != Synchronization::kDecentlam) {
    plan.graph.reset();
    plan.circle.clear();
  }
  plan.period = IsOneStep(synchronization) ? 1
                                           : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
                                                 period, 1, std::max<std::uint64_t>(most, 1)));
}

}  // namespace tactus::policies
