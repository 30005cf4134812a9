// The total batch at which a second teaches most, from the noise of gradients and measured speeds.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/fixed_cost.h"
#include "policies/least_gain.h"
#include "policies/planner_options.h"
#include "policies/proportional_batch.h"
#include "policies/training_wait.h"

namespace tactus::policies {

// Chooses the total B of a step for the largest goodput, throughput times statistical efficiency:
//
//   G(B) = U(B) / T(B),   T = UpdateSeconds of a step of B / (s(B) sum_i v_i),   U = UsefulSamples
//
// s(B) being how much faster longer steps compute as their fixed part weighs less: FixedCost, which
// knows nothing before the total was changed once, and takes that change back where it was wrong.
//
// among B 2^(k/4), k = -4 to 4, i.e. at most doubled or halved at once, within the bounds of every
// worker, and for local steps at a constant rate no fewer on average than that was chosen for,
// where there are as many. Where AdaScale sets the rate U(B) = B (phi + B_0) / (phi + B), the
// efficiency of Pollux. The split follows the speeds, by ProportionalBatch.
//
// It proposes when the best B promised more than the least gain for kPersistenceSeconds of training
// and kRoundsMin rounds running, and not sooner than kRestSeconds and kRoundsMin rounds after the
// change before. That is a LeastGain of kGainMin to kGainMax with a half-life of kHalfLifeSeconds:
// noise in the noise scale moves the total ever less often.
//
// Source: design, after the goodput of [pollux] section 3; memory, unverified.
class GoodputBatch final : public RememberingPolicy<GoodputBatch> {
 public:
  static constexpr double kGainMin = 0.05;
  static constexpr double kGainMax = 0.40;
  static constexpr double kHalfLifeSeconds = 150;
  static constexpr double kPersistenceSeconds = 1;
  static constexpr double kRestSeconds = 10;
  static constexpr int kRoundsMin = 5;

  // base_batch: [samples] > 0.
  GoodputBatch(const BatchOptions& options, double base_batch);

  std::string Start(Plan& first, const Observations& seen) override;
  void Observe(const Report& report) override { split_.Observe(report); }
  std::optional<Proposal> Decide(const Situation& situation) override;

  friend void Fields(auto& archive, Of<GoodputBatch> auto& policy) {
    archive("split", policy.split_);
    archive("fixed_cost", policy.fixed_cost_);
    archive("gain_least", policy.gain_least_);
    archive("promising", policy.promising_);
    archive("rested", policy.rested_);
    archive("seconds", policy.seconds_);
  }

 private:
  struct Choice {
    double total = 0;
    double goodput = 0;  // [useful samples/s]
  };

  void LookAtCost(const Situation& situation);
  double Least(const Situation& situation) const;
  Choice Best(const Situation& situation) const;
  double Goodput(const Situation& situation, double total) const;
  // Whether the best total is worth a change by now.
  bool Due(const Observations& seen, bool promising);
  std::optional<Proposal> Split(const Situation& situation);
  Proposal Resize(const Situation& situation, const Choice& best, double goodput_now) const;

  const BatchOptions options_;
  const double base_batch_;
  ProportionalBatch split_;
  FixedCost fixed_cost_{};
  LeastGain gain_least_{kGainMin, kGainMax, kHalfLifeSeconds};
  std::optional<TrainingWait> promising_{};  // since the best total is worth a change
  TrainingWait rested_{};                    // since the latest change
  double seconds_ = 0;                       // training time at the last look
};

}  // namespace tactus::policies
