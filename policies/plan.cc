#include "policies/plan.h"

#include <algorithm>
#include <numeric>

#include "policies/encodings.h"

namespace tactus::policies {
namespace {

// What is saved over what encoding takes on the machine of EncodingRow, as others are slower.
constexpr double kSavedMin = 4;

bool FitsGraph(const Plan& plan, std::uint32_t members) {
  if (plan.synchronization != Synchronization::kDecentlam) {
    return !plan.graph && plan.circle.empty();
  }
  if (!plan.graph || !Takes(*plan.graph, members)) return false;
  if (plan.circle.empty()) return true;
  std::vector<std::uint32_t> sorted = plan.circle;
  std::ranges::sort(sorted);
  std::vector<std::uint32_t> ranks(members);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return sorted == ranks;
}

}  // namespace

Encoding StartingGroup::EncodingByLinks() const {
  const bool may = exchange_seconds >= kLongExchangeSeconds && Knows(Encoding::kFloat16);
  const double saved = exchange_seconds * (1 - ShareOf(Encoding::kFloat16, members));
  const double taken = RowOf(Encoding::kFloat16).seconds_per_value * exchange_values;
  return may && saved >= kSavedMin * taken ? Encoding::kFloat16 : Encoding::kDense;
}

bool Fits(const Plan& plan, std::uint32_t members) {
  if (plan.batch_sizes.size() != members) return false;
  if (plan.period < 1 || plan.period > kPeriodMax) return false;
  if (IsOneStep(plan.synchronization) && plan.period != 1) return false;
  if (!FitsGraph(plan, members)) return false;
  const std::uint64_t step =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  return step >= 1 && step <= kRoundSamplesMax / plan.period;
}

}  // namespace tactus::policies
