#include "policies/auto_learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "policies/figures.h"
#include "policies/optimizers.h"
#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

constexpr double kTotalSlack = 0.05;

double TotalOf(const Plan& plan) {
  return std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), 0.0);
}

// Shares that move leave a step as long as it was; its total may be off by what they are rounded.
// Of delayed rounds the sizes are those of passes, and the batch is an outcome.
bool SameRounds(const Plan& one, const Plan& other) {
  if (one.synchronization != other.synchronization || one.period != other.period) return false;
  if (one.aggregation != other.aggregation || one.encoding != other.encoding) return false;
  return one.synchronization == Synchronization::kDelayed ||
         std::abs(TotalOf(one) - TotalOf(other)) <= kTotalSlack * TotalOf(other);
}

// Whether longer steps do, by themselves: what shorter ones save of noise is still falling when
// longer ones are tried, and would count for them. Local ones must do so for certain.
bool LeadsLower(const PeriodCanary::Outcome& outcome, bool local) {
  return outcome.alarm.empty() &&
         outcome.lower > (local ? PeriodCanary::kErrorsAtLast * outcome.error : 0);
}

}  // namespace

LearningRateRule RuleFor(const Plan& plan, std::string_view optimizer) {
  if (plan.aggregation == Aggregation::kAdasum) return LearningRateRule::kConstant;
  if (MembersDiffer(plan)) return LearningRateRule::kConstant;
  if (IsPreconditioned(optimizer)) return LearningRateRule::kSqrt;
  return TellsNoise(plan.encoding) ? LearningRateRule::kAdascale : LearningRateRule::kConstant;
}

// One member has nobody whose samples would make its steps longer. Of no more than the base batch
// no rule makes any that are longer than those of constant.
bool AutoLearningRate::Quiet(const Plan& plan) const {
  if (plan.batch_sizes.size() < 2) return false;
  const bool longer = TotalOf(plan) > base_batch_;
  if (IsPeriodic(plan)) return quiet_windows_.value_or(longer);
  return quiet_.value_or(longer && IsPreconditioned(optimizer_));
}

void AutoLearningRate::Turn(const Plan& plan) {
  const bool quiet = Quiet(plan);
  (IsPeriodic(plan) ? quiet_windows_ : quiet_) = !quiet;
}

LearningRateRule AutoLearningRate::Wanted(const Plan& plan) const {
  return Quiet(plan) ? LearningRateRule::kConstant : RuleFor(plan, optimizer_);
}

std::string AutoLearningRate::Why(const Plan& plan) const {
  if (plan.aggregation == Aggregation::kAdasum) {
    return "constant: adasum lengthens the step itself where gradients differ";
  }
  if (MembersDiffer(plan)) {
    return "constant: each member's steps are of its own samples, however many the others have";
  }
  if (RuleFor(plan, optimizer_) == LearningRateRule::kConstant) {
    return "constant: with " + std::string(NameOf(plan.encoding)) + " " + std::string(kHidesNoise);
  }
  if (Quiet(plan) && IsPeriodic(plan)) {
    return "constant: longer local steps drift further apart, and were not found to pay";
  }
  if (Quiet(plan)) {
    return quiet_ ? "constant: longer steps were found to keep the loss up"
                  : "constant: longer steps of " + optimizer_ + " have yet to be found to pay";
  }
  if (!IsPreconditioned(optimizer_)) {
    return "adascale: the gain of the larger batch follows from the measured noise of gradients";
  }
  return "sqrt: steps of " + optimizer_ + " " + std::string(BendingOf(optimizer_));
}

// What was found of the rate is about the job.
std::string AutoLearningRate::Start(Plan& first, const Observations& seen) {
  Resume(first);
  in_force_.reset();
  seconds_ = seen.seconds();
  first.learning_rate_rule = Wanted(first);
  return Why(first);
}

// What is in force may be what a former coordinator only tried: nobody found that it is right. What
// was on trial is over.
void AutoLearningRate::Resume(const Plan&) {
  if (canary_) Turn(*in_force_);
  canary_.reset();
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
  const bool same = in_force_ && SameRounds(now, *in_force_);
  const bool refused =
      canary_ && now.version >= canary_->setting().version && now.learning_rate_rule != Wanted(now);
  if (canary_ && (!same || refused)) {
    canary_.reset();
    Turn(*in_force_);
  }
  if (same && now.learning_rate_rule == in_force_->learning_rate_rule) return;
  const bool other_kind = !in_force_ || IsPeriodic(now) != IsPeriodic(*in_force_);
  if (other_kind && Quiet(now)) {
    due_ = std::max(due_, kPauseQuiet * std::max(situation.seen.seconds(), 1.0));
  }
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

double AutoLearningRate::GainOfRule(const Situation& situation) const {
  const Plan& in_force = situation.in_force;
  if (!Quiet(in_force)) return situation.seen.rounds().back().gain;
  return GainOf(TotalOf(in_force), {.rule = RuleFor(in_force, optimizer_),
                                    .base_batch = base_batch_,
                                    .noise_scale = situation.seen.NoiseScale()});
}

// A canary could tell, and a rule that gains could be wrong, or right.
bool AutoLearningRate::Due(const Situation& situation, const PeriodCanary::Setting& setting,
                           double gain) const {
  const Observations& seen = situation.seen;
  if (situation.other_on_trial || seen.members() < 2) return false;
  if (seen.seconds() < due_) return false;
  if (RuleFor(situation.in_force, optimizer_) == LearningRateRule::kConstant) return false;
  if (gain < kGainLeast || !PeriodCanary::Comparable(setting, seen)) return false;
  if (Quiet(situation.in_force)) return true;
  const LossLine line = PeriodCanary::LineBefore(setting, seen);
  const double horizon = std::numbers::ln2 - std::log1p(1 / gain);
  const double cost = std::max(line.fall, 0.0) * horizon;
  const double doubt = line.fall_error * horizon;
  const double loss = std::abs(line.mean);
  return cost < kPlateau * loss && doubt < kDoubt * loss;
}

std::optional<Proposal> AutoLearningRate::Try(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (seen.rounds().empty()) return std::nullopt;
  const PeriodCanary::Setting setting = {.version_before = version_,
                                         .version = in_force.version + 1,
                                         .seconds_before = seconds_,
                                         .seconds_start = seen.seconds(),
                                         .base_batch = base_batch_,
                                         .of_rate = true};
  const double gain = GainOfRule(situation);
  if (!Due(situation, setting, gain)) return std::nullopt;
  due_ = kPause * seen.seconds();
  Turn(in_force);
  Proposal proposal = Propose(situation);
  if (!situation.complete(proposal.plan)) {
    Turn(in_force);
    return std::nullopt;
  }
  proposal.decision.inputs = {{"gain of the rate", gain, ""}};
  proposal.decision.reason = "tried out for " + Percent(PeriodCanary::kShare) +
                             " of the training time: whether " +
                             (Quiet(in_force) ? "shorter" : "longer") + " steps lead lower";
  canary_.emplace(setting, seen);
  proposal.trial = Trial::kBegins;
  return proposal;
}

std::optional<Proposal> AutoLearningRate::Judge(const Situation& situation) {
  const std::optional<PeriodCanary::Outcome> outcome = canary_->Look(situation.seen);
  if (!outcome) return std::nullopt;
  canary_.reset();
  due_ = kPause * situation.seen.seconds();
  const bool quiet = Quiet(situation.in_force);
  const bool pays = quiet ? outcome->Pays(PeriodCanary::kErrorsAtLast)
                          : LeadsLower(*outcome, IsPeriodic(situation.in_force));
  if (quiet == pays) due_ = kPauseQuiet * situation.seen.seconds();
  if (pays) return std::nullopt;
  Turn(situation.in_force);
  Proposal proposal = Propose(situation);
  if (outcome->higher) proposal.trial = Trial::kUndone;
  outcome->Explain("another length of steps", proposal.decision);
  return proposal;
}

}  // namespace tactus::policies
