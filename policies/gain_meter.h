// What became of decisions: the metric after the change against what it would have been without.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/decision.h"
#include "policies/decision_fields.h"
#include "policies/observations.h"
#include "policies/round_rates.h"

namespace tactus::policies {

// Follows the decisions of one plan at a time.
//
//   measured gain = rate(after) / rate(before) - 1
//
// rate    sum of the metric / sum of seconds; of the loss: its fall, LossTrend::fall, where that of
//         before is above kFallErrors of its standard errors
//
// before  the latest rounds under the plan before, at most kBeforeMax, at least kRoundsMin
// after   the rounds under the new plan but the first, once they are kRoundsMin and last kSeconds,
//         or kSecondsMin when the plan gives way; of short rounds kRoundsMax at most
//
// The speeds of machines differ more from one stretch of time to the next than a correction of the
// shares gains. So what such a correction gained is measured within the rounds after it: each would
// have taken longer, by as much as the longest computation with the former shares, at the speeds
// that the round itself had:
//
//   measured gain = sum (longest with the shares before - longest) / sum of seconds
//
// Like the promise, it takes a computation's time as proportional to its samples: where a batch has
// a fixed cost, both are too large alike.
//
// A decision whose plan gave way to another one sooner, or without a metric, is dropped. Useful
// samples are counted by the noise scale of the time of measuring, before and after.
//
// Source: design.
class GainMeter {
 public:
  static constexpr double kSeconds = 10;
  static constexpr double kSecondsMin = 2;
  static constexpr int kRoundsMin = 3;
  static constexpr int kBeforeMax = 30;
  static constexpr int kRoundsMax = Observations::kRoundsKept - kBeforeMax - 2;
  static constexpr double kFallErrors = 2;

  // base_batch: > 0.
  explicit GainMeter(double base_batch) : base_batch_(base_batch) {}

  // The decisions of plan `decisions[0].plan_version` replace those that are not measured yet, of
  // which nothing more will be seen: now or never.
  void Follow(const std::vector<Decision>& decisions, const Observations& seen);

  // A group ended; what is not measured never will be.
  void Forget() { followed_.clear(); }

  // Another round is whole.
  void Step(const Observations& seen);

  // The decisions measured since the last call.
  std::vector<Decision> Take();

  friend void Fields(auto& archive, Of<GainMeter> auto& meter) {
    archive("before", meter.before_);
    archive("after", meter.after_);
    archive("begun", meter.begun_);
    archive("followed", meter.followed_);
    archive("measured", meter.measured_);
  }

 private:
  // Whether the rounds after are enough to go by.
  bool Enough(const Observations& seen, double seconds_least);
  void Measure(const Observations& seen);
  std::optional<double> Gain(const Observations& seen, const Decision& decision) const;
  std::optional<double> GainOfLoss(const Observations& seen) const;
  std::optional<double> GainOfShares(const Observations& seen) const;
  std::optional<double> Rate(const Observations& seen, const Observations::Range& range,
                             const std::string& metric) const;

  const double base_batch_;
  Observations::Span before_{};
  Observations::Span after_{};
  std::optional<double> begun_;     // training time at which the rounds after began
  std::vector<Decision> followed_;  // of one plan
  std::vector<Decision> measured_;
};

}  // namespace tactus::policies
