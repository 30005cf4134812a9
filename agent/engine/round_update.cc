// The part of RoundEngine that comes after a combination: parameters, report, ledger, plan.

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/engine/round_engine.h"
#include "base/check.h"

namespace tactus::engine {

namespace {

bool IsDelayed(const policies::Plan& plan) {
  return plan.synchronization == policies::Synchronization::kDelayed;
}

}  // namespace

// vector: the combined one. What is decided here is decided from numbers that are equal on all
// members; so all come to the same conclusions. Here the engine waits for the device.
void RoundEngine::Apply(Round& round, std::span<const float> vector,
                        const collective::Completion& completion) {
  if (round.kind == Kind::kDelta) device_.Copy(gate_.span(), gate_on_host_.span());
  Combined combined = combination_.Read();
  const Lanes& lanes = combined.lanes;
  round.spread = SpreadOf(lanes);
  const double divisor = round.aggregator->Divisor(lanes.samples);
  combined.norm2 = lanes.samples > 0 ? combined.norm2 / (divisor * divisor) : 0;
  const bool skip = lanes.nonfinite > 0 || !std::isfinite(combined.norm2);
  nonfinite_rounds_ = skip ? nonfinite_rounds_ + 1 : 0;
  if (round.kind != Kind::kDelta && lanes.samples > 0) round.rate = RateFor(round, lanes);
  if (!skip && lanes.samples > 0) {
    Update(round, vector, combined);
  } else if (round.kind == Kind::kDelta) {
    local_steps_.Restore(buffers_.parameters);
    optimizer_.ResetMomentum();
    optimizers_differ_ = true;  // a reset leaves Adam's moments as each member has them
  }
  if (skip) combined.norm2 = 0;
  Report(round, combined, completion.finished - round.combining);
  Count(lanes);
  Settle(lanes);
}

// The gain of AdaScale is for a mean of several gradients: a single one has no measured noise.
policies::LearningRate::Rate RoundEngine::RateFor(const Round& round, const Lanes& lanes) const {
  const bool alone =
      round.rule == policies::LearningRateRule::kAdascale && round.spread.contributors < 2;
  return learning_rate_.Next(alone ? policies::LearningRateRule::kConstant : round.rule,
                             lanes.samples);
}

void RoundEngine::Update(const Round& round, std::span<const float> vector,
                         const Combined& combined) {
  const Lanes& lanes = combined.lanes;
  const double divisor = round.aggregator->Divisor(lanes.samples);
  policies::UpdateFacts facts{.samples = lanes.samples};
  if (round.kind == Kind::kDelta) {
    // A single step that Adasum combines is no window: it is the optimizer's own step.
    const bool window = round.synchronization == policies::Synchronization::kPeriodic;
    local_steps_.Apply(vector,
                       {.scale = 1 / divisor,
                        .learning_rate = round.rate.rate,
                        .momentum = window ? options_.block_momentum : 0},
                       buffers_.parameters);
    if (window && !options_.keep_local_momentum) optimizer_.ResetMomentum();
    optimizers_differ_ = true;
    steps_ += round.updates;
  } else {
    optimizer_.Step(
        vector,
        {.gradient = cuda::ClippedScale(divisor, combined.norm2, options_.clip_norm.value_or(0)),
         .learning_rate = round.rate.rate},
        buffers_.parameters);
    ++steps_;
    facts = round.aggregator->FactsOf(lanes, round.spread, combined.norm2);
  }
  learning_rate_.Applied(round.rule, facts);
  losses_.Add(lanes.loss_sum, lanes.samples, round.updates);
}

// The ledger's part: which samples the round consumed.
void RoundEngine::Count(const Lanes& lanes) {
  // Only delayed rounds go by the counts, and the next may be the first of them.
  const bool paced =
      IsDelayed(plan_) || (!plans_waiting_.empty() && IsDelayed(plans_waiting_.Front()));
  const bool whole = static_cast<std::uint64_t>(lanes.samples) == ledger_.reserved();
  if (paced || !whole) paces_ = ToCounts(lanes.member_samples);
  if (whole) {
    ledger_.ApplyWhole();
  } else {
    ledger_.Apply(paces_);
  }
}

// Of this member's mean gradient, or of those of its local steps on average; 0 where it has none.
double RoundEngine::LocalNorm2(const Round& round, const Combined& combined) const {
  const double own = static_cast<double>(round.samples);
  if (!std::isfinite(combined.own_norm2) || !std::isfinite(round.loss_sum) || own == 0) return 0;
  if (round.kind == Kind::kDelta) {
    return gate_on_host_.span()[cuda::kGateNorm2Sum] / round.steps;
  }
  const double divisor = round.aggregator->Divisor(own);
  return combined.own_norm2 / (divisor * divisor);
}

void RoundEngine::Report(const Round& round, const Combined& combined, Duration transfer) {
  const Lanes& lanes = combined.lanes;
  samples_ += round.samples;
  const auto samples_global = static_cast<std::uint64_t>(lanes.samples);
  samples_global_ += samples_global;
  const bool finite = std::isfinite(combined.own_norm2) && std::isfinite(round.loss_sum);
  while (reports_.size() >= kReportsMax) reports_.Pop();  // of a caller who takes none
  [[maybe_unused]] const bool pushed = reports_.Push(policies::Report{
      .round = round.number,
      .plan_version = round.plan_version,
      .rank = static_cast<std::uint32_t>(rank()),
      .samples = round.samples,
      .loss_sum = finite ? round.loss_sum : 0,
      .steps = round.steps,
      .compute_seconds = ToSeconds(round.compute),
      .blocked_seconds = ToSeconds(round.blocked),
      .transfer_seconds = ToSeconds(std::max(Duration{}, transfer)),
      .round_seconds = ToSeconds(round.length),
      .bytes_sent = combination_.bytes(),
      .gradient_norm2_local = LocalNorm2(round, combined),
      .gradient_norm2_global = combined.norm2,
      .samples_global = samples_global,
      .loss_mean_global = samples_global > 0 ? lanes.loss_sum / lanes.samples : 0,
      .nonfinite_members = static_cast<std::uint32_t>(lanes.nonfinite),
      .contributors = round.spread.contributors,
      .samples_gradient_norm2 = lanes.samples_gradient_norm2,
      .orthogonality = round.aggregator->Orthogonality(lanes, round.spread, combined.norm2),
      .learning_rate = round.rate.rate,
      .gain = round.rate.gain,
      .progress = learning_rate_.progress(),
      .epoch = ledger_.epoch(),
      .epoch_consumed = ledger_.consumed() + samples_global});
}

// From what all members know alike.
std::string RoundEngine::WhyStopHere() const {
  return ReasonToStop(options_.stop, {.rounds = rounds_,
                                      .epochs = ledger_.epoch(),
                                      .steps = learning_rate_.progress(),
                                      .losses = &losses_});
}

// After a round: who stops, which plan is in force. Every member comes to the same conclusion.
void RoundEngine::Settle(const Lanes& lanes) {
  ++rounds_;
  if (lanes.plan_votes == transport_.size()) {
    plan_ = plans_waiting_.Pop();
    SetShares();
  }
  if (outcome_ != Outcome::kTraining) return;  // the last round, after which it was to end

  if (nonfinite_rounds_ >= options_.nonfinite_rounds_max) {
    outcome_ = Outcome::kDiverged;
    reason_ =
        "the gradient was not finite in " + std::to_string(nonfinite_rounds_) + " rounds in a row";
    return;
  }
  reason_ = WhyStopHere();
  const bool asked = lanes.stop_votes > 0;
  voted_to_stop_ = reason_.empty() && asked;
  if (voted_to_stop_) {
    reason_ = stop_reason_.empty() ? "another member asked to stop" : stop_reason_;
  }
  if (reason_.empty()) return;
  if (lanes.discard_votes > 0) {
    outcome_ = Outcome::kDiscarded;
  } else {
    const bool all_suspend = voted_to_stop_ && lanes.suspend_votes == lanes.stop_votes;
    outcome_ = all_suspend ? Outcome::kSuspended : Outcome::kFinished;
  }
}

}  // namespace tactus::engine
