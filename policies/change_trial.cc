#include "policies/change_trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "policies/figures.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

constexpr std::uint64_t kVersionMax = std::numeric_limits<std::uint64_t>::max();
constexpr int kRoundsOfLoss = 4;  // before the loss says anything
constexpr std::array<int, 4> kLooks = {ChangeTrial::kRoundsMin, 8, 14, ChangeTrial::kRounds};

}  // namespace

Observations::Span ChangeTrial::Before(int most) const {
  return {.first = setting_.version_before, .end = setting_.version, .most = most};
}

Observations::Span ChangeTrial::After() const {
  return {.first = setting_.version, .end = kVersionMax, .leave_out = kRoundsOfChange};
}

ChangeTrial::Judgement ChangeTrial::Look(const Observations& seen) {
  const Observations::Range after = seen.Find(After());
  const int rounds = static_cast<int>(after.to - after.from);
  std::string regret;
  if (seen.AnySkipped(after) && !seen.AnySkipped(seen.Find(Before(Observations::kRoundsKept)))) {
    regret = "numbers were not finite";
  } else {
    regret = RegretOfLoss(seen, rounds);
  }
  const bool rose = !regret.empty();
  for (const int look : kLooks) {
    if (!regret.empty() || rounds < look || rounds_looked_ >= look) continue;
    rounds_looked_ = look;
    regret = RegretOfPace(seen, look);
  }
  if (!regret.empty()) {
    return {.verdict = Verdict::kRegretted, .reason = std::move(regret), .undo = rose};
  }
  const bool long_enough =
      rounds >= kRoundsMin && seen.seconds() - setting_.seconds_start >= kSecondsMin;
  return {.verdict = rounds >= kRounds || long_enough ? Verdict::kKept : Verdict::kOpen};
}

ChangeTrial::Evidence ChangeTrial::Compare(const Observations& seen) const {
  const auto useful = [&](const Observations::Span& span) {
    return UsefulSamplesPerSecond(seen, seen.Find(span), setting_.base_batch, seen.NoiseScale())
        .value_or(0);
  };
  return {.useful_before = useful(Before(kRounds)),
          .useful = useful(After()),
          .fall_before = seen.Trend(Before(kRounds)).fall,
          .fall = seen.Trend(After()).fall};
}

std::string ChangeTrial::RegretOfLoss(const Observations& seen, int rounds) const {
  if (rounds < kRoundsOfLoss) return {};
  const LossTrend before = seen.Trend(Before(kLooks[0]));
  // The latter half of the trial tells where it led.
  Observations::Span latest = After();
  latest.most = std::max(kRoundsOfLoss, rounds / 2);
  const LossTrend after = seen.Trend(latest);
  const double rise = after.mean - before.mean;
  const double error = std::hypot(after.mean_error, before.mean_error);
  if (!(rise > std::log1p(kLossMargin) && rise > kLossErrors * error)) return {};
  return "the loss rose from " + Figure(setting_.loss_floor + std::exp(before.mean)) + " to " +
         Figure(setting_.loss_floor + std::exp(after.mean));
}

std::string ChangeTrial::RegretOfPace(const Observations& seen, int rounds) const {
  const Evidence evidence = Compare(seen);
  if (evidence.useful > 0 && evidence.useful < evidence.useful_before * (1 - kRateMargin)) {
    return Figure(evidence.useful) + " useful samples/s were measured, before it were " +
           Figure(evidence.useful_before);
  }
  Observations::Span latest = After();
  latest.most = rounds / 2;
  const LossTrend trend = seen.Trend(latest);
  if (!Lags(seen.Trend(Before(kRounds)), trend)) return {};
  return "the loss is at " + Figure(setting_.loss_floor + std::exp(trend.mean)) +
         ", going on as before would have led lower";
}

}  // namespace tactus::policies
