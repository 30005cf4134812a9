#include "policies/auto_synchronization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "policies/adacomm_synchronization.h"
#include "policies/figures.h"
#include "policies/optimizers.h"
#include "policies/plan_names.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"
#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

std::size_t IndexOf(Synchronization synchronization) {
  return static_cast<std::size_t>(synchronization);
}

// The smallest tau >= 2 for which D / (tau s + D) <= kShare.
std::uint32_t PeriodFor(double step, double transfer) {
  const double periods = std::ceil(transfer * (1 / AutoSynchronization::kShare - 1) / step);
  return static_cast<std::uint32_t>(std::clamp(periods, 2.0, static_cast<double>(kPeriodMax)));
}

}  // namespace

AutoSynchronization::AutoSynchronization(const PlannerOptions& options)
    : options_(options), period_most_(options.synchronization.period_max) {}

// Bans and the least gain outlive a group: they are about the job, and a worker that comes and goes
// must not buy the next trial. What was measured of the group's exchange is void.
std::string AutoSynchronization::Start(Plan& first, const Observations& seen) {
  Synchronize(first, Synchronization::kEveryStep, 1);
  trial_.reset();
  rule_.reset();
  version_of_kind_ = first.version;
  promising_ = 0;
  growing_ = false;
  rounds_to_wait_ = kRoundsMin;
  seconds_seen_ = seen.seconds();
  return seen.members() == 1 ? "every_step: one member has nobody to exchange with"
                             : "every_step until speeds and the transfer are measured";
}

void AutoSynchronization::Resume(const Plan& in_force) { version_of_kind_ = in_force.version; }

std::string AutoSynchronization::Follow(Plan& plan, const Observations&) const {
  const std::uint32_t before = plan.period;
  const bool delayed = plan.synchronization == Synchronization::kDelayed;
  // Delayed rounds end by themselves: their period is a bound, which comes back to the job's when
  // smaller batches make room. A period that was proved is only ever shortened.
  Synchronize(plan, plan.synchronization,
              delayed ? options_.synchronization.steps_max : plan.period);
  if (plan.period == before || delayed) return {};
  return "the period follows the batch: a round has at most " + std::to_string(kRoundSamplesMax) +
         " samples";
}

// A trial is judged before anything else, so that a mistake lasts no round longer than it must;
// then Adacomm lowers a period that is in force, trial or not, as the loss does not wait; and no
// change is compared on top of one on trial, or the two could not be told apart.
std::optional<Proposal> AutoSynchronization::Decide(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (seen.members() == 1) return std::nullopt;
  gain_least_ = kGainMin + (gain_least_ - kGainMin) * std::exp2(-1 / kHalfLife);
  if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return std::nullopt;
  if (trial_ && NeverAdopted(situation.in_force)) trial_.reset();
  if (trial_) {
    if (std::optional<Proposal> back = Judge(situation)) return back;
  }
  if (situation.in_force.synchronization == Synchronization::kPeriodic && !growing_) {
    if (std::optional<Proposal> period = Average(situation)) return period;
  }
  if (trial_) return std::nullopt;
  if (rounds_to_wait_ > 0) {
    --rounds_to_wait_;
    return std::nullopt;
  }
  rounds_to_wait_ = kComparisonRounds - 1;
  return Compare(situation);
}

// A plan of the trial's version or later is in force with the former synchronization: the one on
// trial was turned down by the planner, as it would have changed a frozen axis.
bool AutoSynchronization::NeverAdopted(const Plan& in_force) const {
  return in_force.version >= trial_->setting().version &&
         in_force.synchronization == former_.synchronization && in_force.period == former_.period;
}

std::optional<Proposal> AutoSynchronization::Average(const Situation& situation) {
  if (IsPreconditioned(options_.optimizer)) return std::nullopt;  // the rule is derived for sgd
  const Observations& seen = situation.seen;
  if (!rule_) {
    // F_0 is the loss now, not that of the job's start: the period in force was chosen for it.
    const std::optional<double> loss = seen.RecentLoss();
    if (!loss) return std::nullopt;
    rule_.emplace(AdacommOptions{.period_initial = std::min(situation.in_force.period,
                                                            options_.synchronization.period_max),
                                 .period_max = options_.synchronization.period_max,
                                 .interval_seconds = options_.synchronization.interval_seconds,
                                 .loss_floor = options_.synchronization.loss_floor},
                  *loss, seen.rounds().back().scheduled_rate);
    seconds_seen_ = seen.seconds();
  }
  const double seconds = seen.seconds() - seconds_seen_;
  seconds_seen_ = seen.seconds();
  std::optional<Proposal> proposal = AskAdacomm(*rule_, situation, seconds);
  if (!proposal) return std::nullopt;
  period_most_ = std::min(period_most_, rule_->state().period);
  // At a period of 1 averaging is over, and with it whatever was on trial: what is compared from
  // now on is compared with every step.
  if (proposal->plan.synchronization == Synchronization::kEveryStep) {
    rule_.reset();
    trial_.reset();
    version_of_kind_ = situation.in_force.version + 1;
    rounds_to_wait_ = kRestRounds;
  }
  return proposal;
}

double AutoSynchronization::Useful(const Plan& plan, const Observations& seen) const {
  const RoundForecast round = Forecast(plan, seen, *seen.TransferSeconds());
  const double worth = plan.synchronization == Synchronization::kDelayed ? kDelayWorth : 1;
  if (!(round.seconds > 0) || !(round.samples > 0)) return 0;
  return worth * round.updates *
         UsefulSamples(round.samples, {.rule = plan.learning_rate_rule,
                                       .base_batch = static_cast<double>(options_.base_batch),
                                       .noise_scale = seen.NoiseScale()}) /
         round.seconds;
}

std::uint32_t AutoSynchronization::LongestPeriod(const Situation& situation) const {
  const Plan& in_force = situation.in_force;
  const double step = situation.seen.StepSeconds(in_force.batch_sizes);
  if (!(step > 0)) return 1;
  // Noise of long periods shows late: each is to be proved by one of a quarter of it at least.
  const bool periodic = in_force.synchronization == Synchronization::kPeriodic;
  const std::uint32_t proved = periodic ? in_force.period : 1;
  const std::uint64_t most =
      std::min<std::uint64_t>(period_most_, std::uint64_t{proved} * kPeriodGrowth);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(PeriodFor(step, *situation.seen.TransferSeconds()), most));
}

std::vector<AutoSynchronization::Candidate> AutoSynchronization::Candidates(
    const Situation& situation) const {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  std::vector<Candidate> candidates;
  const auto offer = [&](Synchronization synchronization, std::uint32_t period) {
    Plan plan = in_force;
    Synchronize(plan, synchronization, period);
    // Forecast as it would run: with the batch and the rate that the other axes would take then.
    std::optional<Plan> whole = situation.complete(plan);
    if (!whole) return;
    const double useful = Useful(*whole, seen);
    candidates.push_back(
        {.plan = *std::move(whole),
         .useful = useful,
         .banned = seen.seconds() < bans_[IndexOf(synchronization)].until_seconds});
  };
  if (in_force.synchronization != Synchronization::kEveryStep) {
    offer(Synchronization::kEveryStep, 1);
  }
  // A shorter period is Adacomm's to choose, from the loss; this is about time, which asks for
  // longer ones alone.
  const std::uint32_t period = LongestPeriod(situation);
  const bool periodic = in_force.synchronization == Synchronization::kPeriodic;
  if (period > (periodic ? in_force.period : 1)) offer(Synchronization::kPeriodic, period);
  if (in_force.synchronization == Synchronization::kDelayed) return candidates;
  if (IsPreconditioned(options_.optimizer) || options_.momentum <= kDelayMomentumMax) {
    offer(Synchronization::kDelayed, options_.synchronization.steps_max);
  }
  return candidates;
}

std::optional<Proposal> AutoSynchronization::Compare(const Situation& situation) {
  const std::vector<Candidate> candidates = Candidates(situation);
  const double now = Useful(situation.in_force, situation.seen);
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.banned) continue;
    if (best == nullptr || candidate.useful > best->useful) best = &candidate;
  }
  if (best == nullptr || !(best->useful > now * (1 + gain_least_))) {
    // The period is as long as it pays: from here on the loss rules it.
    growing_ = false;
    promising_ = 0;
    return std::nullopt;
  }
  // By kind, not by period: a period that moves with the measured transfer is the same promise.
  const bool same = promising_ > 0 && promising_kind_ == best->plan.synchronization;
  promising_ = same ? promising_ + 1 : 1;
  promising_kind_ = best->plan.synchronization;
  if (promising_ < kPersistence) return std::nullopt;
  return Change(situation, *best, candidates);
}

Proposal AutoSynchronization::Change(const Situation& situation, const Candidate& to,
                                     const std::vector<Candidate>& all) {
  const Observations& seen = situation.seen;
  const double now = Useful(situation.in_force, seen);
  const double step = seen.StepSeconds(situation.in_force.batch_sizes);
  const double transfer = *seen.TransferSeconds();
  const double gain = to.useful / std::max(now, std::numeric_limits<double>::min()) - 1;
  // One axis alone: the planner makes the others follow, with reasons of their own.
  Proposal proposal{.plan = situation.in_force};
  proposal.plan.synchronization = to.plan.synchronization;
  proposal.plan.period = to.plan.period;
  Decision& decision = proposal.decision;
  decision.inputs = {{"transfer of a round", transfer, "s"},
                     {"longest step", step, "s"},
                     {"transfer over step", transfer / step, ""},
                     {"useful samples/s", now, "samples/s"}};
  if (const std::optional<double> noise = seen.NoiseScale()) {
    decision.inputs.push_back({"gradient noise scale", *noise, "samples"});
  }
  decision.metric = kUsefulSamplesPerSecond;
  decision.predicted_gain = gain;
  decision.alternatives = {{ValueOf(situation.in_force, Axis::kSynchronization), 0}};
  const std::string chosen = ValueOf(to.plan, Axis::kSynchronization);
  for (const Candidate& other : all) {
    const std::string value = ValueOf(other.plan, Axis::kSynchronization);
    if (value != chosen) decision.alternatives.push_back({value, other.useful / now - 1});
  }
  decision.reason = "a transfer of " + Figure(transfer) + " s against a step of " + Figure(step) +
                    " s: " + chosen + " should teach " + Percent(gain) + " more in a second";
  former_ = situation.in_force;
  trial_.emplace(ChangeTrial::Setting{.version_before = version_of_kind_,
                                      .version = situation.in_force.version + 1,
                                      .seconds_start = seen.seconds(),
                                      .base_batch = static_cast<double>(options_.base_batch),
                                      .loss_floor = options_.synchronization.loss_floor});
  growing_ = to.plan.synchronization == Synchronization::kPeriodic;
  if (growing_) rule_.reset();
  promising_ = 0;
  gain_least_ = std::min(gain_least_ * kRestlessness, kGainMax);
  return proposal;
}

std::optional<Proposal> AutoSynchronization::Judge(const Situation& situation) {
  ChangeTrial::Judgement judgement = trial_->Look(situation.seen);
  if (judgement.verdict == ChangeTrial::Verdict::kOpen) return std::nullopt;
  rounds_to_wait_ = kRestRounds;
  if (judgement.verdict == ChangeTrial::Verdict::kRegretted) {
    return TakeBack(situation, judgement.reason);
  }
  version_of_kind_ = trial_->setting().version;
  trial_.reset();
  return std::nullopt;
}

Proposal AutoSynchronization::TakeBack(const Situation& situation, const std::string& reason) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  const ChangeTrial::Evidence evidence = trial_->Compare(seen);
  Ban& ban = bans_[IndexOf(in_force.synchronization)];
  // The trial is the price of the ban: kBanFactor bounds the share of time spent on mistakes.
  ban.length =
      std::max(2 * ban.length, kBanFactor * (seen.seconds() - trial_->setting().seconds_start));
  ban.until_seconds = seen.seconds() + ban.length;
  if (in_force.synchronization == Synchronization::kPeriodic) {
    // Half of what failed may do, and what was in force before did.
    rule_.reset();
    period_most_ = std::min(period_most_, std::max(in_force.period / 2, former_.period));
    growing_ = false;
  }
  version_of_kind_ = in_force.version + 1;
  trial_.reset();
  Proposal proposal{.plan = in_force};
  Synchronize(proposal.plan, former_.synchronization, former_.period);
  const bool measured = evidence.useful > 0 && evidence.useful_before > 0;
  proposal.decision = {
      .inputs = {{"useful samples/s before", evidence.useful_before, "samples/s"},
                 {"useful samples/s", evidence.useful, "samples/s"},
                 {"power of time by which the loss fell before", evidence.fall_before, ""},
                 {"power of time by which the loss falls", evidence.fall, ""},
                 {"training time until it may be tried again", ban.length, "s"}},
      .metric = kUsefulSamplesPerSecond,
      .predicted_gain = measured ? evidence.useful_before / evidence.useful - 1 : 0,
      .alternatives = {{ValueOf(in_force, Axis::kSynchronization), 0}},
      .reason = std::string(NameOf(in_force.synchronization)) + " did not keep its promise: " +
                reason + "; not tried again for " + Figure(ban.length) + " s"};
  return proposal;
}

}  // namespace tactus::policies
