#include "policies/gain_meter.h"

#include <utility>

namespace tactus::policies {
void GainMeter::Follow(const std::vector<Decision>& decisions, const Observations& seen) {
  followed_.clear();
  if (decisions.empty() || seen.rounds().empty()) return;
  const std::uint64_t version = decisions.front().plan_version;
  before_ = {.first = seen.rounds().back().plan_version, .end = version, .most = kBeforeMax};
  after_ = {.first = version, .end = version + 1, .leave_out = 1};
  for (const Decision& decision : decisions) {
    if (!decision.metric.empty()) followed_.push_back(decision);
  }
}

void GainMeter::Step(const Observations& seen) {
  if (followed_.empty()) return;
  const Observations::Range after = seen.Find(after_);
  const int rounds = static_cast<int>(after.to - after.from);
  double seconds = 0;
  for (std::size_t at = after.from; at < after.to; ++at) seconds += seen.rounds()[at].seconds;
  if (rounds < kBeforeMin || (rounds < kRoundsMin && seconds < kSecondsMin)) {
    // Another plan runs already: these rounds will not get more.
    if (!seen.rounds().empty() && seen.rounds().back().plan_version >= after_.end) {
      followed_.clear();
    }
    return;
  }
  for (Decision& decision : std::exchange(followed_, {})) {
    decision.measured_gain = Gain(seen, decision.metric);
    if (decision.measured_gain) measured_.push_back(std::move(decision));
  }
}

std::vector<Decision> GainMeter::Take() { return std::exchange(measured_, {}); }

std::optional<double> GainMeter::Gain(const Observations& seen, const std::string& metric) const {
  if (metric == kLossFall) {
    const LossTrend before = seen.Trend(before_);
    const LossTrend after = seen.Trend(after_);
    const bool known = before.points >= LossTrend::kPointsMin &&
                       after.points >= LossTrend::kPointsMin &&
                       before.fall > kFallErrors * before.fall_error && before.fall > 0;
    return known ? std::optional(after.fall / before.fall - 1) : std::nullopt;
  }
  const std::optional<double> before = Rate(seen, seen.Find(before_), metric);
  const std::optional<double> after = Rate(seen, seen.Find(after_), metric);
  return before && after ? std::optional(*after / *before - 1) : std::nullopt;
}

std::optional<double> GainMeter::Rate(const Observations& seen, const Observations::Range& range,
                                      const std::string& metric) const {
  if (range.to - range.from < kBeforeMin) return std::nullopt;
  return metric == kUsefulSamplesPerSecond ? UsefulSamplesPerSecond(seen, range, base_batch_)
                                           : SamplesPerSecond(seen, range);
}

}  // namespace tactus::policies
