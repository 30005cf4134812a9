#include "policies/auto_learning_rate.h"

#include "policies/optimizers.h"

namespace tactus::policies {
namespace {

std::string Why(const Plan& plan, std::string_view optimizer) {
  if (plan.synchronization == Synchronization::kPeriodic) {
    return "constant: a local step is one of a worker's own batch, for which the rate was chosen";
  }
  if (plan.aggregation == Aggregation::kAdasum) {
    return "constant: adasum lengthens the step itself where gradients differ";
  }
  if (!IsPreconditioned(optimizer)) {
    return "adascale: the gain of the larger batch follows from the measured noise of gradients";
  }
  return "sqrt: steps of " + std::string(optimizer) + " " + std::string(BendingOf(optimizer));
}

}  // namespace

LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer) {
  if (plan.synchronization == Synchronization::kPeriodic) return LearningRateRule::kConstant;
  if (plan.aggregation == Aggregation::kAdasum) return LearningRateRule::kConstant;
  return IsPreconditioned(optimizer) ? LearningRateRule::kSqrt : LearningRateRule::kAdascale;
}

std::string AutoLearningRate::Start(Plan& first, const Observations&) {
  first.learning_rate_rule = RuleFor(first, optimizer_);
  return Why(first, optimizer_);
}

std::optional<Proposal> AutoLearningRate::Decide(const Situation& situation) {
  Proposal proposal{.plan = situation.in_force};
  std::string reason = Follow(proposal.plan, situation.seen);
  if (reason.empty()) return std::nullopt;
  proposal.decision.reason = std::move(reason);
  return proposal;
}

std::string AutoLearningRate::Follow(Plan& plan, const Observations&) const {
  const LearningRateRule rule = RuleFor(plan, optimizer_);
  if (plan.learning_rate_rule == rule) return {};
  plan.learning_rate_rule = rule;
  return Why(plan, optimizer_);
}

}  // namespace tactus::policies
