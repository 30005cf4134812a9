#include "policies/post_local_synchronization.h"

#include "policies/figures.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {

std::string PostLocalSynchronization::Start(Plan& first, const Observations& seen) {
  if (seen.alone()) {
    Synchronize(first, Synchronization::kEveryStep, 1);
    return "every_step: " + std::string(seen.WhyAlone());
  }
  if (!fallen_) {
    Synchronize(first, Synchronization::kEveryStep, 1);
    return "every_step until rounds show that the schedule has halved the rate";
  }
  Synchronize(first, Synchronization::kPeriodic, period_);
  return "post_local goes on with " + ValueOf(first, Axis::kSynchronization);
}

std::optional<Proposal> PostLocalSynchronization::Decide(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (seen.rounds().empty()) return std::nullopt;
  fallen_ = fallen_ || (rate_falls_at_ &&
                        seen.rounds().back().progress >= static_cast<double>(*rate_falls_at_));
  // What is promised is a matter of speeds: a new group is asked again when they are known.
  if (!fallen_ || seen.alone() || !seen.SpeedsKnown()) return std::nullopt;
  if (IsPeriodic(situation.in_force)) return std::nullopt;
  return Change(situation);
}

Proposal PostLocalSynchronization::Change(const Situation& situation) const {
  const Observations& seen = situation.seen;
  const WholeRound& last = seen.rounds().back();
  Proposal proposal{.plan = situation.in_force};
  Synchronize(proposal.plan, Synchronization::kPeriodic, period_);
  const double step = seen.StepSeconds(situation.in_force.batch_sizes);
  const double transfer = seen.TransferSeconds().value_or(0);
  const double after = UpdateSeconds(proposal.plan, step, transfer);
  proposal.decision = {
      .inputs = {{"scheduled learning rate of the last round", last.scheduled_rate, ""},
                 {"progress", last.progress, "base steps"},
                 {"the rate has halved at", static_cast<double>(*rate_falls_at_), "base steps"},
                 {"longest step", step, "s"},
                 {"transfer of a round", transfer, "s"}},
      .metric = kSamplesPerSecond,
      .predicted_gain =
          after > 0 ? UpdateSeconds(situation.in_force, step, transfer) / after - 1 : 0,
      .alternatives = {{ValueOf(situation.in_force, Axis::kSynchronization), 0}},
      .reason = "the schedule has halved the learning rate by base step " +
                std::to_string(*rate_falls_at_) + ": from here on parameters are averaged every " +
                std::to_string(proposal.plan.period) + " steps"};
  return proposal;
}

std::string PostLocalSynchronization::Follow(Plan& plan, const Observations&) const {
  if (plan.synchronization != Synchronization::kPeriodic) return {};
  const std::uint32_t before = plan.period;
  Synchronize(plan, plan.synchronization, period_);
  if (plan.period == before) return {};
  return "the period follows the batch: a round has at most " + std::to_string(kRoundSamplesMax) +
         " samples";
}

}  // namespace tactus::policies
