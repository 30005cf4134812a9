#include "policies/auto_learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "policies/figures.h"
#include "policies/optimizers.h"

namespace tactus::policies {
namespace {

bool SameRounds(const Plan& one, const Plan& other) {
  return one.synchronization == other.synchronization && one.period == other.period &&
         one.aggregation == other.aggregation;
}

}  // namespace

LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer) {
  if (plan.aggregation == Aggregation::kAdasum) return LearningRateRule::kConstant;
  return IsPreconditioned(optimizer) ? LearningRateRule::kSqrt : LearningRateRule::kAdascale;
}

LearningRateRule AutoLearningRate::Wanted(const Plan& plan) const {
  return quiet_ ? LearningRateRule::kConstant : RuleFor(plan, optimizer_);
}

std::string AutoLearningRate::Why(const Plan& plan) const {
  if (plan.aggregation == Aggregation::kAdasum) {
    return "constant: adasum lengthens the step itself where gradients differ";
  }
  if (quiet_) return "constant: longer steps were found to keep the loss up";
  if (!IsPreconditioned(optimizer_)) {
    return "adascale: the gain of the larger batch follows from the measured noise of gradients";
  }
  return "sqrt: steps of " + optimizer_ + " " + std::string(BendingOf(optimizer_));
}

// What was found of the rate is about the job; what was on trial ends with its group.
std::string AutoLearningRate::Start(Plan& first, const Observations& seen) {
  if (canary_) quiet_ = !quiet_;
  canary_.reset();
  in_force_ = {};
  seconds_ = seen.seconds();
  first.learning_rate_rule = Wanted(first);
  return Why(first);
}

void AutoLearningRate::Resume(const Plan& in_force) {
  canary_.reset();
  quiet_ = in_force.learning_rate_rule != RuleFor(in_force, optimizer_);
}

std::optional<Proposal> AutoLearningRate::Decide(const Situation& situation) {
  Note(situation);
  if (canary_) return Judge(situation);
  Proposal proposal{.plan = situation.in_force};
  std::string reason = Follow(proposal.plan, situation.seen);
  if (reason.empty()) return Try(situation);
  proposal.decision.reason = std::move(reason);
  return proposal;
}

std::string AutoLearningRate::Follow(Plan& plan, const Observations&) const {
  const LearningRateRule rule = Wanted(plan);
  if (plan.learning_rate_rule == rule) return {};
  plan.learning_rate_rule = rule;
  return Why(plan);
}

// A canary whose rounds become others, or which never came into force, says nothing.
void AutoLearningRate::Note(const Situation& situation) {
  const Plan& now = situation.in_force;
  const bool same = SameRounds(now, in_force_);
  const bool refused =
      canary_ && now.version >= canary_->setting().version && now.learning_rate_rule != Wanted(now);
  if (canary_ && (!same || refused)) {
    canary_.reset();
    quiet_ = !quiet_;
  }
  if (same && now.learning_rate_rule == in_force_.learning_rate_rule) return;
  in_force_ = now;
  version_ = now.version;
  seconds_ = situation.seen.seconds();
}

Proposal AutoLearningRate::Propose(const Situation& situation) const {
  Proposal proposal{.plan = situation.in_force};
  proposal.plan.learning_rate_rule = Wanted(situation.in_force);
  proposal.decision.alternatives = {{ValueOf(situation.in_force, Axis::kLearningRate), 0}};
  return proposal;
}

std::optional<Proposal> AutoLearningRate::Try(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (seen.members() < 2 || seen.rounds().empty() || seen.seconds() < due_) return std::nullopt;
  if (RuleFor(in_force, optimizer_) == LearningRateRule::kConstant) return std::nullopt;
  const PeriodCanary::Setting setting = {.version_before = version_,
                                         .version = in_force.version + 1,
                                         .seconds_before = seconds_,
                                         .seconds_start = seen.seconds(),
                                         .base_batch = base_batch_,
                                         .of_rate = true};
  if (!PeriodCanary::Comparable(setting, seen)) return std::nullopt;
  if (!quiet_) {
    const double gain = seen.rounds().back().gain;
    const LossLine line = PeriodCanary::LineBefore(setting, seen);
    const double cost = std::max(line.fall, 0.0) * (std::numbers::ln2 - std::log1p(1 / gain));
    if (gain < kGainLeast || cost > kPlateau * line.mean) return std::nullopt;
  }
  due_ = kPause * seen.seconds();
  quiet_ = !quiet_;
  Proposal proposal = Propose(situation);
  proposal.decision.inputs = {{"gain of the rate", seen.rounds().back().gain, ""}};
  proposal.decision.reason = "tried out for " + Percent(PeriodCanary::kShare) +
                             " of the training time: whether " + (quiet_ ? "shorter" : "longer") +
                             " steps lead lower";
  canary_.emplace(setting, seen);
  return proposal;
}

std::optional<Proposal> AutoLearningRate::Judge(const Situation& situation) {
  const std::optional<PeriodCanary::Outcome> outcome = canary_->Look(situation.seen);
  if (!outcome) return std::nullopt;
  canary_.reset();
  due_ = kPause * situation.seen.seconds();
  const double least = quiet_ ? PeriodCanary::kErrorsAtLast * outcome->error : 0;
  if (outcome->value() > least) return std::nullopt;
  quiet_ = !quiet_;
  Proposal proposal = Propose(situation);
  proposal.decision.inputs = {{"loss lower than by going on", outcome->lower, ""},
                              {"loss that its pace costs in as long again", outcome->cost, ""}};
  if (std::isfinite(outcome->error)) {
    proposal.decision.inputs.push_back({"standard error", outcome->error, ""});
  }
  proposal.decision.reason = "steps of another length did not pay: the loss is " +
                             Figure(outcome->lower) + " lower, of which their pace costs " +
                             Figure(outcome->cost) + " in as long again";
  return proposal;
}

}  // namespace tactus::policies
