// The learning rate rule that suits the rest of the plan.

#pragma once

#include <string>
#include <string_view>

#include "policies/axis_policy.h"

namespace tactus::policies {

// The rule by which a rate chosen for the base batch suits the plan:
//
//   constant   periodic: each local step is one of a worker's own batch, as the schedule meant it
//              Adasum: it lengthens the step itself where gradients differ
//   adascale   sgd otherwise: the gain follows the noise that was measured, within [1, S]
//   sqrt       adam, adamw and lamb otherwise: their steps are divided by the root of the second
//              moment of the gradient, of which noise is a part that falls with 1/S
//
// Source: sqrt: memory, unverified (the rule for adaptive optimizers); the rest design.
LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer);

// Follows the plan by RuleFor, at the start and with every change of another axis.
class AutoLearningRate final : public AxisPolicy {
 public:
  explicit AutoLearningRate(std::string_view optimizer) : optimizer_(optimizer) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

 private:
  const std::string optimizer_;
};

}  // namespace tactus::policies
