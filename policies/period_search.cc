#include "policies/period_search.h"

#include <cmath>

#include "policies/figures.h"

namespace tactus::policies {

bool PeriodSearch::LongEnough(std::size_t rounds) const {
  if (!first_) return rounds >= kRoundsFirst;
  return rounds >= kRoundsMin && rounds * period() >= kStepsMin;
}

std::optional<PeriodSearch::Step> PeriodSearch::Look(const Observations& seen,
                                                     std::uint64_t version) {
  if (done_) return std::nullopt;
  const Observations::Span span{.first = version, .end = version + 1, .leave_out = 1};
  const Observations::Range range = seen.Find(span);
  const std::size_t rounds = range.to - range.from;
  if (!LongEnough(rounds)) return std::nullopt;
  Step step{.trend = seen.Trend(span)};
  double seconds = 0;
  double transfer = 0;
  bool lost = false;
  for (std::size_t at = range.from; at < range.to; ++at) {
    seconds += seen.rounds()[at].seconds;
    transfer += seen.rounds()[at].transfer_seconds;
    lost = lost || seen.rounds()[at].skipped;
  }
  step.share = seconds > 0 ? transfer / seconds : 0;
  if (first_) {
    Conclude(step, lost);
  } else {
    const double each = static_cast<double>(rounds);
    Begin(step, (seconds - transfer) / each, transfer / each);
  }
  return step;
}

std::size_t PeriodSearch::LongEnd(double step, double transfer) const {
  std::size_t at = 0;
  while (at + 1 < kCandidates.size() && kCandidates[at + 1] <= period_max_ &&
         transfer > kShareMax * (kCandidates[at] * step + transfer)) {
    ++at;
  }
  return at;
}

void PeriodSearch::Begin(Step& step, double step_seconds, double transfer_seconds) {
  first_ = step.trend;
  at_ = LongEnd(step_seconds, transfer_seconds);
  done_ = at_ == 0;
  const std::string takes = "of single steps the exchange takes " + Percent(step.share);
  step.reason = done_ ? takes + " of the time, so it starts with them"
                      : takes + " of the time, so " + std::to_string(period()) + " are tried first";
}

// What a longer period lost is no fault of this one.
bool PeriodSearch::Slows(const LossTrend& trend) const {
  if (!hurt_) return Lags(*first_, trend);
  const double error = std::hypot(first_->fall_error, trend.fall_error);
  return trend.fall < (1 - kLagMargin) * first_->fall - kLagErrors * error;
}

void PeriodSearch::Conclude(Step& step, bool lost) {
  const bool hurts = lost || Slows(step.trend);
  const std::string tried = "a period of " + std::to_string(period()) + " steps ";
  hurt_ = hurt_ || hurts;
  if (hurts) --at_;
  done_ = !hurts || at_ == 0;
  step.reason =
      !hurts  ? tried + "does not slow the fall of the loss, so it starts there"
      : done_ ? tried + "slows the fall of the loss, so it starts with single steps"
              : tried + "slows the fall of the loss, so " + std::to_string(period()) + " is tried";
}

}  // namespace tactus::policies
