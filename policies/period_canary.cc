#include "policies/period_canary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "policies/change_trial.h"
#include "policies/figures.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

constexpr std::uint64_t kVersionMax = std::numeric_limits<std::uint64_t>::max();

// Without the first half, in which what came before still shows. [s]
double LatterHalf(double from, double to) { return (from + to) / 2; }

// Of a canary whose rounds have as many steps as the latest. [s]
double LeastSeconds(const Observations& seen, double round_seconds) {
  if (seen.rounds().empty()) return 0;
  const WholeRound& latest = seen.rounds().back();
  const double steps = std::max(latest.steps, 1u);
  const double rounds = std::ceil(PeriodCanary::kStepsMin / steps);
  return std::max(rounds, 1.0 * PeriodCanary::kRoundsMin) *
         (round_seconds > 0 ? round_seconds : latest.seconds);
}

}  // namespace

LossLine PeriodCanary::LineBefore(const Setting& setting, const Observations& seen) {
  return seen.history().Fit({.first = setting.version_before,
                             .end = setting.version,
                             .from = LatterHalf(setting.seconds_before, setting.seconds_start)});
}

PeriodCanary::PeriodCanary(const Setting& setting, const Observations& seen)
    : setting_(setting),
      before_(LineBefore(setting, seen)),
      noise_scale_(seen.NoiseScale()),
      useful_before_(PaceOf(seen,
                            seen.Find({.first = setting.version_before, .end = setting.version}),
                            LatterHalf(setting.seconds_before, setting.seconds_start))) {}

double PeriodCanary::PaceOf(const Observations& seen, const Observations::Range& range,
                            double from) const {
  if (!setting_.of_rate) {
    return UsefulSamplesPerSecond(seen, range, setting_.base_batch, noise_scale_).value_or(0);
  }
  double gains = 0;
  double rounds = 0;
  for (std::size_t at = range.from; at < range.to; ++at) {
    const WholeRound& round = seen.rounds()[at];
    if (round.skipped || round.seconds_end < from) continue;
    gains += round.gain;
    ++rounds;
  }
  return rounds > 0 ? gains / rounds : 0;
}

bool PeriodCanary::Comparable(const Setting& setting, const Observations& seen,
                              const Expected& expected) {
  const double now = setting.seconds_start;
  const bool large = expected.pace >= kPaceLarge;
  const LossLine line = LineBefore(setting, seen);
  return now - setting.seconds_before >= kShareBefore * now && seen.Lasts(large ? now / 2 : now) &&
         LeastSeconds(seen, expected.round_seconds) <= (large ? kShareLarge : kShareMost) * now &&
         std::isfinite(line.mean_error) && (!setting.of_progress || line.rounds >= kRoundsOfLine);
}

std::optional<PeriodCanary::Outcome> PeriodCanary::Look(const Observations& seen) {
  const Observations::Range range = seen.Find({.first = setting_.version, .end = kVersionMax});
  std::uint64_t steps = 0;
  for (std::size_t at = range.from; at < range.to; ++at) steps += seen.rounds()[at].steps;
  const auto rounds = static_cast<int>(range.to - range.from);
  if (std::string alarm = Alarm(seen, range); !alarm.empty())
    return Outcome{.alarm = alarm, .higher = true};
  const double passed = seen.seconds() - setting_.seconds_start;
  // One that began early may have taken its share when it is in doubt: more rounds tell more.
  const std::uint64_t least = setting_.of_progress && prolonged_ ? 2 * kStepsMin : kStepsMin;
  const double share = prolonged_ ? kShareMost : kShare;
  if (steps < least || rounds < kRoundsMin || passed < share * seen.seconds()) {
    return std::nullopt;
  }
  const Outcome outcome = Judge(seen, range);
  const bool doubtful = outcome.value() > 0 && outcome.value() < kErrors * outcome.error;
  // Who looks again and again finds what chance brings.
  if (doubtful && !std::exchange(prolonged_, true)) return std::nullopt;
  return outcome;
}

LossLine PeriodCanary::LineSince(double seconds, const Observations& seen) const {
  return seen.history().Fit({.first = setting_.version, .end = kVersionMax, .from = seconds});
}

std::string PeriodCanary::Alarm(const Observations& seen, const Observations::Range& range) const {
  const Observations::Range before =
      seen.Find({.first = setting_.version_before, .end = setting_.version});
  if (seen.AnySkipped(range) && !seen.AnySkipped(before)) return "numbers were not finite";
  const LossLine after = LineSince(LatterHalf(setting_.seconds_start, seen.seconds()), seen);
  const double expected = before_.At(after.center);
  const double rise = after.mean - expected;
  const double error = std::hypot(before_.ErrorAt(after.center), after.mean_error);
  const bool rose = rise > ChangeTrial::kLossMargin * std::abs(expected) &&
                    rise > ChangeTrial::kLossErrors * error;
  if (!rose) return {};
  return "the loss rose to " + Figure(after.mean) + " where going on would have led to " +
         Figure(expected);
}

PeriodCanary::Outcome PeriodCanary::Judge(const Observations& seen,
                                          const Observations::Range& range) const {
  const double half = LatterHalf(setting_.seconds_start, seen.seconds());
  const LossLine after = LineSince(half, seen);
  if (after.rounds == 0) return {.alarm = "no round was of use", .higher = true};
  // Few rounds do not know their own spread.
  const double error =
      std::min(after.mean_error, before_.spread / std::sqrt(static_cast<double>(after.rounds)));
  Outcome outcome = {.lower = before_.At(after.center) - after.mean,
                     .error = std::hypot(before_.ErrorAt(after.center), error),
                     .useful_before = useful_before_,
                     .useful = PaceOf(seen, range, half),
                     .higher = after.mean >= before_.At(std::log(setting_.seconds_start)),
                     .rise = after.mean - before_.At(std::log(setting_.seconds_start)),
                     .of_progress = setting_.of_progress};
  const double pace = useful_before_ > 0 ? outcome.useful / useful_before_ : 1;
  if (setting_.of_progress) {
    outcome.worth = WorthAt(after.center, outcome.lower, pace);
  } else {
    outcome.cost = std::max(before_.fall, 0.0) * (std::numbers::ln2 - std::log1p(pace));
  }
  return outcome;
}

// Nothing where it is not certain that the loss fell, or nothing of the canary is known.
std::optional<double> PeriodCanary::WorthAt(double log_seconds, double lower, double pace) const {
  const double passed = std::exp(log_seconds) - setting_.seconds_start;
  if (!(before_.fall > kErrors * before_.fall_error) || !(passed > 0) || !(pace > 0)) {
    return std::nullopt;
  }
  const double reached = std::exp(log_seconds + lower / before_.fall);
  return std::max((reached - setting_.seconds_start) / passed / pace, kWorthMin);
}

void PeriodCanary::Outcome::Explain(std::string_view what, Decision& decision) const {
  decision.reason = std::string(what) + " did not pay: ";
  if (!alarm.empty()) {
    decision.reason += alarm;
    return;
  }
  decision.inputs = {{"loss lower than by going on", lower, ""}};
  if (!of_progress) {
    decision.inputs.push_back({"loss that its pace costs in as long again", cost, ""});
  }
  if (std::isfinite(error)) decision.inputs.push_back({"standard error", error, ""});
  decision.reason += "the loss is " + Figure(std::abs(lower)) + (lower < 0 ? " higher" : " lower") +
                     " than by going on, and ";
  if (of_progress) {
    decision.reason += "not for certain lower, at " + Figure(useful) + " useful samples/s after " +
                       Figure(useful_before);
    return;
  }
  decision.reason += std::string("its pace ") + (cost < 0 ? "brings " : "costs ") +
                     Figure(std::abs(cost)) + " in as long again";
}

}  // namespace tactus::policies
