// Whether another period, rate or encoding would pay: tried for a share of the time, and judged by
// where it leads.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "policies/decision.h"
#include "policies/observations.h"

namespace tactus::policies {

// One period on trial against another, by the loss at common parameters:
//
//   value = y - c
//   y     loss that it led below going on as before: where the line through the rounds before,
//         over ln(t), would be by now, less the mean of the latter half of the canary's
//   c     loss that its pace costs up to the horizon, which is twice the training time so far:
//         f (ln 2 - ln(1 + r)),  r useful samples/s during the canary over those before
//         of another rate, its gain over the one before: a step goes as far as it is long
//   f     -d loss / d ln(t) of that line, at least 0
//
// Fewer exchanges bring more samples, and more of them less noise in what is exchanged, at once and
// for good: what is seen within seconds is weighed against what would come in hours. So noise is
// not averaged away early, where it only looks like progress, nor is a plateau sat out.
//
// Where a sample may teach less than before (Setting::of_progress), a pace is worth nothing before
// it is seen in the loss: then the value is y alone, and what a sample is worth follows from it.
// The line is taken for the course that the same training has at another speed,
//
//   w = (e^(x + y / f) - t0) / (e^x - t0) / r      x: mean ln(t) of what y is of, t0: its start
//
// It is over before its time, and has not paid, with a round that was lost to numbers that are not
// finite, which did not happen before, or a loss that is above that line by more than
// ChangeTrial::kLossMargin of it and kLossErrors standard errors.
//
// Source: design; a horizon that doubles needs no knowledge of the end.
class PeriodCanary {
 public:
  static constexpr double kShare = 0.05;      // of the training time so far, its length
  static constexpr double kShareMost = 0.15;  // where that is in doubt
  static constexpr double kErrorsAtLast = 1.5;
  static constexpr std::uint64_t kStepsMin = 40;  // of one member, whatever the share
  static constexpr int kRoundsMin = 3;
  static constexpr double kErrors = 2;         // of the value's standard errors
  static constexpr double kShareBefore = 0.1;  // of the time, of what it is compared with
  // What promises kPaceLarge times the samples is seen in the loss sooner.
  static constexpr double kPaceLarge = 2;
  static constexpr double kShareLarge = 0.3;  // kShareMost for that
  // Of a line by which alone is judged: of few its errors are not known.
  static constexpr std::uint64_t kRoundsOfLine = 20;
  static constexpr double kWorthMin = 0.1;  // of a sample's that was measured

  struct Setting {
    std::uint64_t version_before = 0;  // of the first plan with the period before
    std::uint64_t version = 0;         // of the canary's plan
    double seconds_before = 0;         // training time when that came into force
    double seconds_start = 0;          // and now
    double base_batch = 32;            // [samples] > 0
    bool of_rate = false;              // what differs is the learning rate
    bool of_progress = false;          // a sample may teach less, or more, than before

    friend void Fields(auto& archive, Of<Setting> auto& setting) {
      archive("version_before", setting.version_before);
      archive("version", setting.version);
      archive("seconds_before", setting.seconds_before);
      archive("seconds_start", setting.seconds_start);
      archive("base_batch", setting.base_batch);
      archive("of_rate", setting.of_rate);
      archive("of_progress", setting.of_progress);
    }
    friend bool Sound(const Setting& setting) { return setting.base_batch > 0; }
  };
  // What a canary's rounds are expected to be.
  struct Expected {
    double round_seconds = 0;  // with as many steps as the latest; 0: as long as that
    double pace = 1;           // useful samples/s over those before
  };
  PeriodCanary() = default;  // to be read into
  // seen  up to the canary's start; Comparable(setting, seen)
  PeriodCanary(const Setting& setting, const Observations& seen);

  // The line of before. Its errors are infinite where there were too few rounds.
  static LossLine LineBefore(const Setting& setting, const Observations& seen);
  // Whether there were rounds enough before, of which a canary could differ: what is in force has
  // been for kShareBefore of the training time, as a few rounds do not tell how the loss falls; the
  // least rounds of a canary, as long as expected, take no more than kShareMost (kShareLarge); and
  // training lasts for as long again, the horizon, as far as anybody knows. Half as long does for
  // kPaceLarge, which brings by then what another one brings in twice the time. Of progress the
  // line is one of kRoundsOfLine rounds.
  static bool Comparable(const Setting& setting, const Observations& seen,
                         const Expected& expected);
  static bool Comparable(const Setting& setting, const Observations& seen) {
    return Comparable(setting, seen, {});
  }

  struct Outcome {
    double lower = 0;          // y
    double cost = 0;           // c
    double error = 0;          // one standard error of the value
    double useful_before = 0;  // [useful samples/s]; of another rate the gain
    double useful = 0;
    std::string alarm{};  // a clause: why it is over before its time; nothing else is told then
    bool higher = false;  // the loss is no lower than when it began
    double rise = 0;      // of the loss since then
    bool of_progress = false;  // as the setting: the cost is 0
    std::optional<double>
        worth{};  // w, in [kWorthMin, ..]; where that is asked for, and f is known
    double value() const { return lower - cost; }

    // Whether the loss is certainly higher than when it began.
    bool Rose() const { return !alarm.empty() || rise > kErrors * error; }
    // Whether it paid by so many standard errors.
    bool Pays(double errors) const { return alarm.empty() && value() > errors * error; }
    // Why `what`, which was tried, is taken back.
    void Explain(std::string_view what, Decision& decision) const;
  };
  // Nothing while it runs.
  std::optional<Outcome> Look(const Observations& seen);

  const Setting& setting() const { return setting_; }

  friend void Fields(auto& archive, Of<PeriodCanary> auto& canary) {
    archive("setting", canary.setting_);
    archive("before", canary.before_);
    archive("prolonged", canary.prolonged_);
    archive("noise_scale", canary.noise_scale_);
    archive("useful_before", canary.useful_before_);
  }

 private:
  LossLine LineSince(double seconds, const Observations& seen) const;
  std::string Alarm(const Observations& seen, const Observations::Range& range) const;
  Outcome Judge(const Observations& seen, const Observations::Range& range) const;
  std::optional<double> WorthAt(double log_seconds, double lower, double pace) const;
  // from: [s] rounds that ended before are left out of a gain.
  double PaceOf(const Observations& seen, const Observations::Range& range, double from) const;

  Setting setting_;
  LossLine before_;
  bool prolonged_ = false;
  std::optional<double> noise_scale_{};  // by which samples are useful, before and after
  double useful_before_ = 0;             // as Outcome has it
};

}  // namespace tactus::policies
