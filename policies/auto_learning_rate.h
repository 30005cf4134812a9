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
//              encodings whose sums hide the noise (TellsNoise), with sgd
//   adascale   sgd otherwise: the gain follows the noise that was measured, within [1, S]
//   sqrt       adam, adamw and lamb otherwise: their steps are divided by the root of the second
//              moment of the gradient, of which noise is a part that falls with 1/S
//
// Local steps take the gain of all members' samples, as their mean is what remains.
//
// Source: sqrt: memory, unverified (the rule for adaptive optimizers); the rest design.
LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer);

// Follows the plan by RuleFor, at the start and with every change of another axis, but where it
// would make steps longer of which no gain knows what that costs, which begin with constant
// (decision 57): local ones, as how far members drift apart grows with the square of their steps,
// and those of preconditioned optimizers, which were found to cost more than they bring over the
// first hundred, while the second moment that they are divided by is hardly known.
//
// Whether the shorter steps of constant or those of the rule lead lower is then tried out by a
// PeriodCanary each, in steps at common parameters and in local ones of their own:
//
//   longer   where the rule would gain kGainLeast or more, by the noise that was measured; stay if
//            they certainly lead lower at once, and in steps at common parameters if at all: what
//            shorter ones bring of noise is still falling then, and would count for them
//   shorter  where the rule gains kGainLeast or more and the loss hardly falls, as a longer step is
//            also one whose noise keeps the loss up in the end; stay if the loss is certain to be
//            better for it. Hardly: what the shorter step would cost until the training time has
//            doubled is less than kPlateau of the loss, and its standard error less than kDoubt of
//            it
//
// Each is tried when the training time is kPause times as long, or kPauseQuiet where shorter steps
// are in force, as what longer ones bring of noise outlasts them. Nothing else may be on trial, and
// what is in force must have been for PeriodCanary::kShareBefore of the time.
//
// Source: design.
class AutoLearningRate final : public RememberingPolicy<AutoLearningRate> {
 public:
  static constexpr double kGainLeast = 1.2;
  static constexpr double kPlateau = 0.05;
  static constexpr double kDoubt = 0.2;
  static constexpr double kPause = 1.5;
  static constexpr double kPauseQuiet = 3;  // where shorter steps are in force

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
    archive("quiet_windows", policy.quiet_windows_);
    archive("canary", policy.canary_);
    archive("due", policy.due_);
    archive("version", policy.version_);
    archive("seconds", policy.seconds_);
    archive("in_force", policy.in_force_);
  }
  friend bool Sound(const AutoLearningRate& policy) {
    return !policy.canary_ || policy.in_force_.has_value();
  }

 private:
  bool Quiet(const Plan& plan) const;
  void Turn(const Plan& plan);
  bool Due(const Situation& situation, const PeriodCanary::Setting& setting, double gain) const;
  double GainOfRule(const Situation& situation) const;
  LearningRateRule Wanted(const Plan& plan) const;
  std::string Why(const Plan& plan) const;
  void Note(const Situation& situation);
  std::optional<Proposal> Try(const Situation& situation);
  std::optional<Proposal> Judge(const Situation& situation);
  Proposal Propose(const Situation& situation) const;

  const std::string optimizer_;
  const double base_batch_;
  // Constant in the place of the rule, as trials found or try; nothing before the first.
  std::optional<bool> quiet_;
  std::optional<bool> quiet_windows_;  // with local steps
  std::optional<PeriodCanary> canary_;
  double due_ = 0;                // training time from which on the other one is tried
  std::uint64_t version_ = 0;     // the first plan with what is in force of rounds and rate
  double seconds_ = 0;            // training time since when
  std::optional<Plan> in_force_;  // at the last look, in this group
};

}  // namespace tactus::policies
