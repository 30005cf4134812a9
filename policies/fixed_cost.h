// What a step costs beside its samples, learned from totals that were in force one after the other.

#pragma once

#include <optional>

#include "base/fields.h"
#include "policies/observations.h"
#include "policies/training_wait.h"

namespace tactus::policies {

// A step of B samples takes all members the time of
//
//   T(B) = (B + F) / V     V: [samples/s] what they would compute without the fixed part
//
// With two totals and the time of a step of each, T_1 and T_2,
//
//   F = (T_1 B_2 - T_2 B_1) / (T_2 - T_1)
//
// F is counted in samples, so that a load which slows samples and fixed part alike leaves it as it
// is. T is the mean over the latest rounds, some kRoundsMost, of a step of the member that computed
// longest: of the former total as it was before it changed, of the new one when it was in force for
// kSeconds and kRounds. Later changes count as much as all before.
//
// Pure; not thread-safe.
//
// Source: design.
class FixedCost {
 public:
  static constexpr double kSeconds = 5;
  static constexpr int kRounds = 10;
  static constexpr int kRoundsMost = 50;
  // A round that took so many times as long as usual tells of something else, and counts for less.
  static constexpr double kOutlier = 2;
  // Totals that are nearer to each other tell of noise.
  static constexpr double kRatioLeast = 1.3;
  // Of the smaller total: less is noise, more is not believed.
  static constexpr double kShareLeast = 0.1;
  static constexpr double kShareMost = 4;

  // Once a round: its steps were of `total` samples > 0.
  void Look(double total, const Observations& seen);

  // [samples] F >= 0; 0 while it is not known.
  double samples() const { return samples_.value_or(0); }

  // The speed-up of samples/s of a step of `total` instead of `now`: above 1 where it is longer.
  double SpeedUp(double now, double total) const {
    return total * (now + samples()) / (now * (total + samples()));
  }

  friend void Fields(auto& archive, Of<FixedCost> auto& cost) {
    archive("samples", cost.samples_);
    archive("total", cost.total_);
    archive("step", cost.step_);
    archive("former_total", cost.former_total_);
    archive("former_step", cost.former_step_);
    archive("since", cost.since_);
  }

 private:
  void Learn();

  std::optional<double> samples_{};
  double total_ = 0;         // in force; 0: none yet
  double step_ = 0;          // [s] of it
  double former_total_ = 0;  // 0: nothing is to be learned from it
  double former_step_ = 0;
  TrainingWait since_{};  // the present total came into force
};

}  // namespace tactus::policies
