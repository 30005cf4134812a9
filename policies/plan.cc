#include "policies/plan.h"

#include <numeric>

namespace tactus::policies {

bool Fits(const Plan& plan, std::uint32_t members) {
  if (plan.batch_sizes.size() != members) return false;
  if (plan.period < 1 || plan.period > kPeriodMax) return false;
  if (plan.synchronization == Synchronization::kEveryStep && plan.period != 1) return false;
  const std::uint64_t step =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  return step >= 1 && step <= kRoundSamplesMax / plan.period;
}

}  // namespace tactus::policies
