// The learning rate rule that suits the rest of the plan, and the loss.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/period_canary.h"

namespace tactus::policies {

// The rule by which a rate chosen for the base batch suits the plan:
//
//   constant   Adasum: it lengthens the step itself where gradients differ
//   adascale   sgd otherwise: the gain follows the noise that was measured, within [1, S]
//   sqrt       adam, adamw and lamb otherwise: their steps are divided by the root of the second
//              moment of the gradient, of which noise is a part that falls with 1/S
//
// Local steps take the gain of all members' samples, as their mean is what remains.
//
// Source: sqrt: memory, unverified (the rule for adaptive optimizers); the rest design.
LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer);

// Follows the plan by RuleFor, at the start and with every change of another axis.
//
// A longer step is also one whose noise keeps the loss up in the end, and local steps bring more of
// it than a gain knows. So where the rule gives a gain of kGainLeast or more and the loss hardly
// falls, constant is tried out by a PeriodCanary, and stays if the loss is certain to be better for
// it; from then on the rule is, and comes back if that leads lower at once. Hardly: what the
// shorter step would cost until the training time has doubled is less than kPlateau of the loss,
// and its standard error less than kDoubt of it.
//
// Each is tried when the training time is kPause times as long, or kPauseQuiet where shorter steps
// are in force, as what longer ones bring of noise outlasts them. Nothing else may be on trial, and
// what is in force must have been for kShareBefore of the time.
//
// Source: design.
class AutoLearningRate final : public RememberingPolicy<AutoLearningRate> {
 public:
  static constexpr double kGainLeast = 1.2;
  static constexpr double kPlateau = 0.05;
  static constexpr double kDoubt = 0.2;
  static constexpr double kPause = 1.5;
  static constexpr double kPauseQuiet = 3;  // where shorter steps are in force
  static constexpr double kShareBefore = 0.1;

  // base_batch: [samples] > 0.
  AutoLearningRate(std::string_view optimizer, double base_batch)
      : optimizer_(optimizer), base_batch_(base_batch) {}

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  bool OnTrial() const override { return canary_.has_value(); }
  std::string Follow(Plan& plan, const Observations& seen) const override;

  friend void Fields(auto& archive, Of<AutoLearningRate> auto& policy) {
    archive("quiet", policy.quiet_);
    archive("canary", policy.canary_);
    archive("due", policy.due_);
    archive("version", policy.version_);
    archive("seconds", policy.seconds_);
    archive("in_force", policy.in_force_);
  }

 private:
  bool Quiet(const Plan& plan) const;
  LearningRateRule Wanted(const Plan& plan) const;
  std::string Why(const Plan& plan) const;
  void Note(const Situation& situation);
  std::optional<Proposal> Try(const Situation& situation);
  std::optional<Proposal> Judge(const Situation& situation);
  Proposal Propose(const Situation& situation) const;

  const std::string optimizer_;
  const double base_batch_;
  bool quiet_ = false;  // constant in the place of the rule
  std::optional<PeriodCanary> canary_;
  double due_ = 0;                // training time from which on the other one is tried
  std::uint64_t version_ = 0;     // the first plan with what is in force of rounds and rate
  double seconds_ = 0;            // training time since when
  std::optional<Plan> in_force_;  // at the last look, in this group
};

}  // namespace tactus::policies
