#include "policies/adacomm_synchronization.h"

#include <algorithm>
#include <cmath>

#include "policies/figures.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

// A period of 1 is the plan of every step.
void SetPeriod(Plan& plan, std::uint32_t period) {
  Synchronize(plan, period > 1 ? Synchronization::kPeriodic : Synchronization::kEveryStep, period);
}

std::string Worded(const AdacommDecision& choice, double loss, double loss_initial) {
  const std::string to = choice.synchronous
                             ? "synchronous steps"
                             : "a period of " + std::to_string(choice.period) + " steps";
  switch (choice.cause) {
    case AdacommCause::kLoss:
      return "the loss fell from " + Figure(loss_initial) + " to " + Figure(loss) +
             ", which asks for more frequent averaging: " + to;
    case AdacommCause::kRate:
      return "the learning rate changed, by which the loss asks for " + to;
    case AdacommCause::kFallback:
      return "the loss stands at " + Figure(loss) +
             ", so that averaging less often no longer pays: " + to;
    case AdacommCause::kNoHeadroom:
      return "the loss cannot fall below where it started: " + to;
    case AdacommCause::kWaiting:
    case AdacommCause::kFalling:
    case AdacommCause::kBadLoss:
      break;
  }
  return "two averagings fit an interval with " + to;
}

}  // namespace

std::optional<Proposal> AskAdacomm(Adacomm& rule, const Situation& situation, double seconds) {
  const Observations& seen = situation.seen;
  const std::optional<double> loss = seen.RecentLoss();
  const double step = seen.StepSeconds(situation.in_force.batch_sizes);
  const double transfer = seen.TransferSeconds().value_or(0);
  const double rate = seen.rounds().back().scheduled_rate;
  if (!loss) return std::nullopt;
  // In a round of one step a lost update leaves the parameters as they are.
  const bool lost = seen.rounds().back().skipped && IsPeriodic(situation.in_force);
  if (lost) rule.ParametersLost();
  const AdacommDecision choice = rule.Averaged({.seconds = seconds,
                                                .loss = *loss,
                                                .rate = rate,
                                                .step_seconds = step,
                                                .transfer_seconds = transfer});
  Proposal proposal{.plan = situation.in_force};
  SetPeriod(proposal.plan, choice.period);
  const double before = UpdateSeconds(situation.in_force, step, transfer);
  const double after = UpdateSeconds(proposal.plan, step, transfer);
  if (ValueOf(proposal.plan, Axis::kSynchronization) ==
      ValueOf(situation.in_force, Axis::kSynchronization)) {
    return std::nullopt;
  }
  proposal.decision = {
      .inputs = {{"training loss", *loss, ""},
                 {"training loss at the start", rule.state().loss_initial, ""},
                 {"scheduled learning rate", rate, ""},
                 {"longest step", step, "s"},
                 {"transfer of a round", transfer, "s"}},
      .metric = kSamplesPerSecond,
      .predicted_gain = after > 0 ? before / after - 1 : 0,
      .alternatives = {{ValueOf(situation.in_force, Axis::kSynchronization), 0}},
      .reason = lost ? "numbers were not finite and a round was lost: half the period"
                     : Worded(choice, *loss, rule.state().loss_initial)};
  return proposal;
}

AdacommSynchronization::AdacommSynchronization(const SynchronizationOptions& options)
    : options_(options),
      period_initial_(std::min(options.period, options.period_max)),
      period_(std::max(period_initial_, 1u)) {
  if (period_initial_ == 0) search_.emplace(options.period_max);
}

std::string AdacommSynchronization::Start(Plan& first, const Observations& seen) {
  seconds_seen_ = seen.seconds();
  members_changed_ = true;
  if (seen.alone()) {
    Synchronize(first, Synchronization::kEveryStep, 1);
    return "every_step: " + std::string(seen.WhyAlone());
  }
  if (search_ && !search_->done()) period_ = search_->period();
  SetPeriod(first, period_);
  if (rule_) return "adacomm goes on with " + ValueOf(first, Axis::kSynchronization);
  return search_ ? "adacomm looks for the first period"
                 : "adacomm starts with " + ValueOf(first, Axis::kSynchronization);
}

void AdacommSynchronization::Resume(const Plan& in_force) {
  period_initial_ = in_force.period;
  period_ = in_force.period;
  // What was learned went with the former coordinator: the loss of now becomes F_0 for this period.
  search_.reset();
  rule_.reset();
  loss_initial_.reset();
}

std::optional<Proposal> AdacommSynchronization::Decide(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (seen.alone() || seen.rounds().empty() || !seen.SpeedsKnown()) return std::nullopt;
  // Before the search, which may last while the loss falls.
  if (!loss_initial_) loss_initial_ = seen.RecentLoss();
  if (!rule_ && search_ && !search_->done()) return Search(situation);
  return Average(situation);
}

std::optional<Proposal> AdacommSynchronization::Search(const Situation& situation) {
  const Observations& seen = situation.seen;
  const std::optional<PeriodSearch::Step> step = search_->Look(seen, situation.in_force.version);
  if (!step) return std::nullopt;
  period_ = search_->period();
  Proposal proposal{.plan = situation.in_force};
  SetPeriod(proposal.plan, period_);
  const double seconds = seen.StepSeconds(situation.in_force.batch_sizes);
  const double transfer = seen.TransferSeconds().value_or(0);
  const double before = UpdateSeconds(situation.in_force, seconds, transfer);
  proposal.decision = {
      .inputs = {{"share of the exchange", step->share, ""},
                 {"power of time by which the loss falls", step->trend.fall, ""},
                 {"transfer of a round", transfer, "s"}},
      .metric = kSamplesPerSecond,
      .predicted_gain = before / UpdateSeconds(proposal.plan, seconds, transfer) - 1,
      .alternatives = {{ValueOf(situation.in_force, Axis::kSynchronization), 0}},
      .reason = step->reason};
  if (std::isfinite(step->trend.fall_error)) {
    proposal.decision.inputs.push_back({"its standard error", step->trend.fall_error, ""});
  }
  if (search_->done()) {
    period_initial_ = period_;
    loss_initial_ = seen.RecentLoss();  // for which that period was found
  }
  return proposal;
}

std::optional<Proposal> AdacommSynchronization::Average(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (!rule_) {
    if (!loss_initial_) return std::nullopt;
    rule_.emplace(AdacommOptions{.period_initial = std::max(period_initial_, 1u),
                                 .period_max = options_.period_max,
                                 .interval_seconds = options_.interval_seconds,
                                 .loss_floor = options_.loss_floor,
                                 .log_time = options_.log_time},
                  *loss_initial_, seen.rounds().back().scheduled_rate, seen.seconds());
    seconds_seen_ = seen.seconds();
  }
  if (const std::optional<double> transfer = seen.TransferSeconds()) {
    // Not sooner: a new group's transfer is unknown until it was measured.
    if (members_changed_ && transfer_seconds_ > 0) {
      rule_->MembersChanged({.seconds_before = transfer_seconds_, .seconds_after = *transfer});
    }
    members_changed_ = false;
    transfer_seconds_ = *transfer;
  }
  const double seconds = seen.seconds() - seconds_seen_;
  seconds_seen_ = seen.seconds();
  std::optional<Proposal> proposal = AskAdacomm(*rule_, situation, seconds);
  if (proposal) period_ = proposal->plan.period;
  return proposal;
}

std::string AdacommSynchronization::Follow(Plan& plan, const Observations&) const {
  const std::uint32_t before = plan.period;
  if (IsPeriodic(plan)) SetPeriod(plan, period_);
  if (plan.period == before) return {};
  return "the period follows the batch: a round has at most " + std::to_string(kRoundSamplesMax) +
         " samples";
}

}  // namespace tactus::policies
