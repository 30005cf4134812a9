// What became of decisions: the metric after the change against the metric before.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/decision.h"
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
// before  the latest kBeforeMax rounds under the plan before, at least kBeforeMin
// after   the rounds under the new plan but the first, once they are kRoundsMin, or last
//         kSecondsMin and are kBeforeMin at least
//
// A decision whose plan gave way to another one sooner, or without a metric, is dropped. Useful
// samples are counted by the noise scale of the time of measuring, before and after.
//
// Source: design.
class GainMeter {
 public:
  static constexpr int kRoundsMin = 10;
  static constexpr double kSecondsMin = 5;
  static constexpr int kBeforeMin = 3;
  static constexpr int kBeforeMax = 30;
  static constexpr double kFallErrors = 2;

  // base_batch: > 0.
  explicit GainMeter(double base_batch) : base_batch_(base_batch) {}

  // The decisions of plan `decisions[0].plan_version` replace those that are not measured yet.
  void Follow(const std::vector<Decision>& decisions, const Observations& seen);

  // A group ended; what is not measured never will be.
  void Forget() { followed_.clear(); }

  // Another round is whole.
  void Step(const Observations& seen);

  // The decisions measured since the last call.
  std::vector<Decision> Take();

 private:
  std::optional<double> Gain(const Observations& seen, const std::string& metric) const;
  std::optional<double> Rate(const Observations& seen, const Observations::Range& range,
                             const std::string& metric) const;

  const double base_batch_;
  Observations::Span before_{};
  Observations::Span after_{};
  std::vector<Decision> followed_;  // of one plan
  std::vector<Decision> measured_;
};

}  // namespace tactus::policies
