#include "policies/gain_meter.h"

#include <utility>

namespace tactus::policies {
namespace {

// A correction of the shares: rounds in lock step, and the batch sizes' own metric.
bool OfShares(const Decision& decision, const WholeRound& round) {
  return decision.axis == Axis::kBatch && decision.metric == kSamplesPerSecond &&
         round.synchronization != Synchronization::kDelayed;
}

}  // namespace

void GainMeter::Follow(const std::vector<Decision>& decisions, const Observations& seen) {
  if (!followed_.empty() && Enough(seen, kSecondsMin)) Measure(seen);
  followed_.clear();
  if (decisions.empty() || seen.rounds().empty()) return;
  const std::uint64_t version = decisions.front().plan_version;
  before_ = {.first = seen.rounds().back().plan_version, .end = version, .most = kBeforeMax};
  after_ = {.first = version, .end = version + 1, .leave_out = 1};
  begun_.reset();
  for (const Decision& decision : decisions) {
    if (!decision.metric.empty()) followed_.push_back(decision);
  }
}

void GainMeter::Step(const Observations& seen) {
  if (followed_.empty() || !Enough(seen, kSeconds)) return;
  Measure(seen);
  followed_.clear();
}

void GainMeter::Measure(const Observations& seen) {
  for (Decision& decision : followed_) {
    decision.measured_gain = Gain(seen, decision);
    if (decision.measured_gain) measured_.push_back(std::move(decision));
  }
}

bool GainMeter::Enough(const Observations& seen, double seconds_least) {
  const Observations::Range after = seen.Find(after_);
  if (after.from == after.to) return false;
  const WholeRound& first = seen.rounds()[after.from];
  if (!begun_) begun_ = first.seconds_end - first.seconds;
  const double seconds = seen.rounds()[after.to - 1].seconds_end - *begun_;
  const auto rounds = static_cast<int>(after.to - after.from);
  return rounds >= kRoundsMax || (rounds >= kRoundsMin && seconds >= seconds_least);
}

std::vector<Decision> GainMeter::Take() { return std::exchange(measured_, {}); }

std::optional<double> GainMeter::Gain(const Observations& seen, const Decision& decision) const {
  if (decision.metric == kLossFall) return GainOfLoss(seen);
  const Observations::Range after = seen.Find(after_);
  if (OfShares(decision, seen.rounds()[after.from])) return GainOfShares(seen);
  const std::optional<double> before = Rate(seen, seen.Find(before_), decision.metric);
  const std::optional<double> rate = Rate(seen, after, decision.metric);
  return before && rate ? std::optional(*rate / *before - 1) : std::nullopt;
}

std::optional<double> GainMeter::GainOfLoss(const Observations& seen) const {
  const LossTrend before = seen.Trend(before_);
  const LossTrend after = seen.Trend(after_);
  const bool known = before.points >= LossTrend::kPointsMin &&
                     after.points >= LossTrend::kPointsMin &&
                     before.fall > kFallErrors * before.fall_error && before.fall > 0;
  return known ? std::optional(after.fall / before.fall - 1) : std::nullopt;
}

std::optional<double> GainMeter::GainOfShares(const Observations& seen) const {
  const Observations::Range after = seen.Find(after_);
  double seconds = 0;
  double saved = 0;
  for (std::size_t at = after.from; at < after.to; ++at) {
    const WholeRound& round = seen.rounds()[at];
    if (!(round.compute_seconds_before > 0)) continue;
    seconds += round.seconds;
    saved += round.compute_seconds_before - round.compute_seconds;
  }
  return seconds > 0 ? std::optional(saved / seconds) : std::nullopt;
}

std::optional<double> GainMeter::Rate(const Observations& seen, const Observations::Range& range,
                                      const std::string& metric) const {
  if (range.to - range.from < kRoundsMin) return std::nullopt;
  return metric == kUsefulSamplesPerSecond
             ? UsefulSamplesPerSecond(seen, range, base_batch_, seen.NoiseScale())
             : SamplesPerSecond(seen, range);
}

}  // namespace tactus::policies
