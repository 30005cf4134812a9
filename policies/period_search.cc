#include "policies/period_search.h"

#include "policies/figures.h"

namespace tactus::policies {

std::optional<PeriodSearch::Step> PeriodSearch::Look(const Observations& seen,
                                                     std::uint64_t version) {
  if (done_) return std::nullopt;
  const Observations::Span span{.first = version, .end = version + 1, .leave_out = 1};
  const Observations::Range range = seen.Find(span);
  const std::size_t rounds = range.to - range.from;
  if (rounds < kRoundsMin || rounds * period() < kStepsMin) return std::nullopt;
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
  const bool worse = at_ > 0 && Lags(best_trend_, step.trend);
  const std::uint32_t tried = period();
  Conclude(step, lost || worse);
  step.reason =
      lost || worse
          ? "a period of " + std::to_string(tried) +
                " steps slows the fall of the loss, so it starts at " + std::to_string(period())
      : done_ ? "a period of " + std::to_string(tried) + " steps is enough: the exchange takes " +
                    Percent(step.share) + " of the time"
              : "a period of " + std::to_string(tried) +
                    " steps does not slow the fall of the loss, so " + std::to_string(period()) +
                    " is tried";
  return step;
}

void PeriodSearch::Conclude(const Step& step, bool hurts) {
  if (hurts) {
    // best_ stays the last period that did no harm.
    done_ = true;
    return;
  }
  best_ = kCandidates[at_];
  best_trend_ = step.trend;
  const bool last = at_ + 1 == kCandidates.size() || kCandidates[at_ + 1] > period_max_;
  done_ = last || step.share < kShareMin;
  if (!done_) ++at_;
}

}  // namespace tactus::policies
