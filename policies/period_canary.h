// Whether another period, or rate, would pay: tried for a share of the time, and judged by where it
// leads.

#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.h"
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
// Source: design; a horizon that doubles needs no knowledge of the end.
class PeriodCanary {
 public:
  static constexpr double kShare = 0.05;      // of the training time so far, its length
  static constexpr double kShareMost = 0.15;  // where that is in doubt
  static constexpr double kErrorsAtLast = 1.5;
  static constexpr std::uint64_t kStepsMin = 40;  // of one member, whatever the share
  static constexpr int kRoundsMin = 3;
  static constexpr double kErrors = 2;  // of the value's standard errors

  struct Setting {
    std::uint64_t version_before = 0;  // of the first plan with the period before
    std::uint64_t version = 0;         // of the canary's plan
    double seconds_before = 0;         // training time when that came into force
    double seconds_start = 0;          // and now
    double base_batch = 32;            // [samples] > 0
    bool of_rate = false;              // what differs is the learning rate

    friend void Fields(auto& archive, Of<Setting> auto& setting) {
      archive("version_before", setting.version_before);
      archive("version", setting.version);
      archive("seconds_before", setting.seconds_before);
      archive("seconds_start", setting.seconds_start);
      archive("base_batch", setting.base_batch);
      archive("of_rate", setting.of_rate);
    }
    friend bool Sound(const Setting& setting) { return setting.base_batch > 0; }
  };
  PeriodCanary() = default;  // to be read into
  // seen  up to the canary's start; Comparable(setting, seen)
  PeriodCanary(const Setting& setting, const Observations& seen);

  // The line of before. Its errors are infinite where there were too few rounds.
  static LossLine LineBefore(const Setting& setting, const Observations& seen);
  // Whether there were rounds enough before, of which a canary could differ.
  static bool Comparable(const Setting& setting, const Observations& seen);

  struct Outcome {
    double lower = 0;          // y
    double cost = 0;           // c
    double error = 0;          // one standard error of the value
    double useful_before = 0;  // [useful samples/s]; of another rate the gain
    double useful = 0;
    double value() const { return lower - cost; }
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
  Outcome Judge(const Observations& seen, const Observations::Range& range) const;
  double PaceOf(const Observations& seen, const Observations::Range& range) const;

  Setting setting_;
  LossLine before_;
  bool prolonged_ = false;
  std::optional<double> noise_scale_{};  // by which samples are useful, before and after
  double useful_before_ = 0;             // as Outcome has it
};

}  // namespace tactus::policies
