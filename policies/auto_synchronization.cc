#include "policies/auto_synchronization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "policies/delayed_sgd.h"
#include "policies/figures.h"
#include "policies/optimizers.h"
#include "policies/plan_names.h"
#include "policies/prior_trial.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"
#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

constexpr double kRounding = 1e-12;

std::size_t IndexOf(Synchronization synchronization) {
  return static_cast<std::size_t>(synchronization);
}

}  // namespace

AutoSynchronization::AutoSynchronization(const PlannerOptions& options) : options_(options) {}

// Bans, credits, the least gain and what period was found right outlive a group: they are about the
// job, and a worker that comes and goes must not buy the next trial. What was measured of the
// group's exchange is void, but that the next one's takes about as long is a better guess than that
// it takes no time: where links are slow, a round of a single step would be all exchange.
std::string AutoSynchronization::Start(Plan& first, const Observations& seen) {
  Synchronize(first, Synchronization::kEveryStep, 1);
  prior_.reset();
  trial_.reset();
  canary_.reset();
  // Plans of the group have no number yet; all its rounds come after those that were seen.
  const bool any = !seen.rounds().empty();
  InForceFrom(any ? seen.rounds().back().plan_version + 1 : 0, seen.seconds());
  promising_since_.reset();
  seconds_seen_ = seen.seconds();
  const bool comes_back =
      period_most_ >= 2 && seen.members() > 1 && !Banned(Synchronization::kPeriodic, seen);
  judged_ = comes_back || (judged_ && period_most_ < 2);
  guessed_ = false;
  if (comes_back) {
    Synchronize(first, Synchronization::kPeriodic, period_most_);
    return ValueOf(first, Axis::kSynchronization) + ": as in the group before";
  }
  if (seen.members() == 1) return "every_step: " + std::string(seen.WhyAlone());
  if (!any && seen.group().prior && BeginsWith(*seen.group().prior, seen.group(), first)) {
    return ValueOf(first, Axis::kSynchronization) +
           ": as a former job of this kind found; tried out";
  }
  if (!any && !seen.group().prior && BeginsByLinks(seen.group(), first)) {
    return ValueOf(first, Axis::kSynchronization) + ": an exchange should take " +
           Figure(ExchangeByLinks(seen.group())) +
           " s, by what the links brought before; until it is measured";
  }
  return "every_step until speeds and the transfer are measured";
}

bool AutoSynchronization::Banned(Synchronization synchronization, const Observations& seen) const {
  return seen.seconds() < bans_[IndexOf(synchronization)].until_seconds;
}

// Within one step of canaries below the period that would be guessed now: what a former job found
// late in its training, or under another load, moves the beginning of this one no further.
bool AutoSynchronization::BeginsWith(const Prior& prior, const StartingGroup& group, Plan& first) {
  const std::optional<double> step = TriedStep(group, first);
  if (!step) return false;
  // The rule of the rate is not chosen yet, and no gain of any is longer.
  const double guess = BestPeriod(*step, prior.transfer_seconds, DriftAt(MostGain(first)));
  const auto period =
      static_cast<std::uint32_t>(std::clamp(1.0 * prior.period, guess / kCanaryStep, guess));
  if (prior.period < 2 || period < 2) return false;
  Synchronize(first, Synchronization::kPeriodic, period);
  first.trial = Trial::kBegins;
  prior_ = prior;
  return true;
}

// Rates that no rule makes longer, and those of preconditioned optimizers, which begin as given,
// have no gain. What promises less than a change that is made at once is left to be measured, as is
// what is soon measured.
bool AutoSynchronization::BeginsByLinks(const StartingGroup& group, Plan& first) {
  const double transfer = ExchangeByLinks(group);
  const std::optional<double> step = TriedStep(group, first);
  if (!step || !(group.exchange_seconds >= kLongExchangeSeconds)) return false;
  const bool as_given =
      options_.learning_rate_policy == "constant" || IsPreconditioned(options_.optimizer);
  const double guess = BestPeriod(*step, transfer, DriftAt(as_given ? 1 : MostGain(first)));
  const double period = std::floor(guess);
  if (period < 2) return false;
  const double worth = 1 / (1 + kDrift * (period - 1));
  if (worth * (*step + transfer) < (1 + kGainLarge) * (*step + transfer / period)) return false;
  Synchronize(first, Synchronization::kPeriodic, static_cast<std::uint32_t>(period));
  guessed_ = true;
  return true;
}

// As it is encoded in the first plan, which is chosen after this. [s]
double AutoSynchronization::ExchangeByLinks(const StartingGroup& group) const {
  const bool chosen = options_.encoding_policy == "auto" && options_.aggregation_policy != "adasum";
  const Encoding encoding = chosen ? group.EncodingByLinks() : Encoding::kDense;
  return group.exchange_seconds * ShareOf(encoding, group.members);
}

double AutoSynchronization::MostGain(const Plan& first) const {
  double samples = 0;
  for (const std::uint32_t size : first.batch_sizes) samples += size;
  return samples / static_cast<double>(options_.base_batch);
}

// By the speeds that workers tried out; nothing: one of them did not. [s]
std::optional<double> AutoSynchronization::TriedStep(const StartingGroup& group,
                                                     const Plan& first) {
  if (group.speeds.size() != first.batch_sizes.size()) return std::nullopt;
  double step = 0;
  for (std::size_t rank = 0; rank < group.speeds.size(); ++rank) {
    if (!(group.speeds[rank] > 0)) return std::nullopt;
    step = std::max(step, first.batch_sizes[rank] / group.speeds[rank]);
  }
  return step;
}

void AutoSynchronization::Resume(const Plan& in_force) {
  prior_.reset();
  trial_.reset();
  canary_.reset();
  guessed_ = false;
  InForceFrom(in_force.version, seconds_seen_);
  judged_ = IsPeriodic(in_force);
}

void AutoSynchronization::InForceFrom(std::uint64_t version, double seconds) {
  version_of_kind_ = version;
  seconds_of_kind_ = seconds;
}

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

// A trial is judged before anything else, so that a mistake lasts no round longer than it must, and
// no change is compared on top of one on trial, or the two could not be told apart.
std::optional<Proposal> AutoSynchronization::Decide(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (seen.members() == 1) return std::nullopt;
  const double passed = seen.seconds() - std::exchange(seconds_seen_, seen.seconds());
  gain_least_.Rest(passed);
  if (prior_) return TryPrior(situation);
  const bool unproved = guessed_ && !judged_ && !trial_;
  if (unproved && seen.AnySkipped({0, seen.rounds().size()})) return LeaveGuess(situation);
  if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return std::nullopt;
  if (NeverAdopted(situation.in_force)) {
    trial_.reset();
    canary_.reset();
  }
  if (trial_) return Judge(situation);
  if (canary_) return JudgePeriod(situation);
  NoteOthers(situation);
  const bool delayed = situation.in_force.synchronization == Synchronization::kDelayed;
  if (judged_ && !delayed) period_most_ = situation.in_force.period;
  if (!judged_ && !AnyRoundInForce(seen)) return std::nullopt;
  if (std::optional<Proposal> change = Compare(situation)) return change;
  if (guessed_ && !judged_) KeepGuess(situation);
  return situation.other_on_trial ? std::nullopt : TryPeriod(situation);
}

// Local steps that come to numbers that are not finite are too many, for all that is known.
Proposal AutoSynchronization::LeaveGuess(const Situation& situation) {
  guessed_ = false;
  InForceFrom(situation.in_force.version + 1, situation.seen.seconds());
  Proposal proposal = ProposePeriod(situation, 1);
  proposal.decision.reason = "numbers were not finite in the first windows";
  return proposal;
}

// The first period, now that its transfer is measured and nothing better is promised, is what other
// ones are tried from.
void AutoSynchronization::KeepGuess(const Situation& situation) {
  guessed_ = IsPeriodic(situation.in_force);
  if (!guessed_) return;
  judged_ = true;
  period_most_ = situation.in_force.period;
  canary_due_ = situation.seen.seconds();
}

// What is compared with what was before must be of steps that are as long, and of exchanges.
void AutoSynchronization::NoteOthers(const Situation& situation) {
  const Plan& now = situation.in_force;
  const LearningRateRule rule = rate_rule_.value_or(now.learning_rate_rule);
  const Encoding encoding = encoding_.value_or(now.encoding);
  rate_rule_ = now.learning_rate_rule;
  encoding_ = now.encoding;
  if (rule == now.learning_rate_rule && encoding == now.encoding) return;
  InForceFrom(now.version, situation.seen.seconds());
  promising_since_.reset();
}

// A plan of the trial's version or later is in force with the former synchronization: the one on
// trial was turned down by the planner, as it would have changed a frozen axis.
bool AutoSynchronization::NeverAdopted(const Plan& in_force) const {
  if (!trial_ && !canary_) return false;
  const std::uint64_t version = trial_ ? trial_->setting().version : canary_->setting().version;
  return in_force.version >= version && in_force.synchronization == former_.synchronization &&
         in_force.period == former_.period;
}

// Proved, it is as what a canary kept; the next one comes as after that.
std::optional<Proposal> AutoSynchronization::TryPrior(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  const ChangeTrial::Judgement judgement =
      JudgePrior(*prior_, seen, options_.synchronization.loss_floor);
  if (judgement.verdict == ChangeTrial::Verdict::kOpen) return std::nullopt;
  prior_.reset();
  if (judgement.verdict == ChangeTrial::Verdict::kKept) {
    judged_ = true;
    period_most_ = in_force.period;
    canary_due_ = seen.seconds();
    return std::nullopt;
  }
  InForceFrom(in_force.version + 1, seen.seconds());
  Proposal proposal = ProposePeriod(situation, 1);
  if (judgement.undo) proposal.trial = Trial::kUndone;
  proposal.decision.reason =
      "what a former job of this kind found does not hold: " + judgement.reason;
  return proposal;
}

std::optional<Prior> AutoSynchronization::Learned(const Observations& seen) const {
  const std::optional<double> transfer = seen.TransferSeconds();
  if (!judged_ || guessed_ || period_most_ == 0 || !transfer) return std::nullopt;
  if (seen.AnySkipped({0, seen.rounds().size()})) return std::nullopt;
  return Prior{.period = period_most_,
               .transfer_seconds = *transfer,
               .encoding = seen.rounds().back().encoding};
}

// What is given up at once leaves speeds and transfer known, but no round of what is in force, by
// which a change could be judged.
bool AutoSynchronization::AnyRoundInForce(const Observations& seen) const {
  return !seen.rounds().empty() && seen.rounds().back().plan_version >= version_of_kind_;
}

double AutoSynchronization::Useful(const Plan& plan, const Observations& seen) const {
  double worth = plan.synchronization == Synchronization::kDelayed ? kDelayWorth : 1;
  if (IsPeriodic(plan)) worth /= 1 + kDrift * (plan.period - 1.0);
  return worth * CreditOf(plan.synchronization, seen.seconds()) * UsefulRate(plan, seen);
}

double AutoSynchronization::UsefulRate(const Plan& plan, const Observations& seen) const {
  const RoundForecast round = Forecast(plan, seen, *seen.TransferSeconds());
  if (!(round.seconds > 0) || !(round.samples > 0)) return 0;
  return policies::UsefulRate(round, {.rule = plan.learning_rate_rule,
                                      .base_batch = static_cast<double>(options_.base_batch),
                                      .noise_scale = seen.NoiseScale()});
}

bool AutoSynchronization::OffersDelay() const {
  const bool preconditioned = IsPreconditioned(options_.optimizer);
  const double momentum = preconditioned ? kFirstMoment : options_.momentum;
  const bool look_ahead = options_.synchronization.look_ahead && !preconditioned;
  const double late = DelayedStabilityLimit(momentum, look_ahead);
  return late >= kDelayRoomMin * StabilityLimit(momentum) * (1 - kRounding);
}

// Rounds of micro-batches may have a smaller batch than the steps in force, which is the batch
// axis's to choose, without a delay: what is credited is that nobody waits.
double AutoSynchronization::WithoutSmallerBatches(const Plan& delayed,
                                                  const Situation& situation) const {
  const Observations& seen = situation.seen;
  const auto samples_per_second = [&](const Plan& plan) {
    const RoundForecast round = Forecast(plan, seen, *seen.TransferSeconds());
    return round.seconds > 0 ? round.updates * round.samples / round.seconds : 0;
  };
  const double now = samples_per_second(situation.in_force);
  if (!(now > 0)) return 0;
  const double credit = CreditOf(delayed.synchronization, seen.seconds());
  return kDelayWorth * credit * UsefulRate(situation.in_force, seen) * samples_per_second(delayed) /
         now;
}

double AutoSynchronization::CreditOf(Synchronization synchronization, double seconds) const {
  const Credit& credit = credits_[IndexOf(synchronization)];
  return 1 - (1 - credit.share) * credit.seconds / std::max(seconds, credit.seconds);
}

// What the change on trial was measured to bring corrects the next promise of its kind.
void AutoSynchronization::Settle(const Plan& in_force, const Observations& seen) {
  const ChangeTrial::Evidence evidence = trial_->Compare(seen);
  if (!(evidence.useful > 0) || !(evidence.useful_before > 0)) return;
  // By what noise scale samples are useful may have come to be known since: of ratios it drops out.
  const double share = evidence.useful / evidence.useful_before / promised_;
  credits_[IndexOf(in_force.synchronization)] = {.share = std::clamp(share, kCreditMin, 1.0),
                                                 .seconds = std::max(seen.seconds(), 1.0)};
}

// A window's members drift apart by the length of their steps, and what that costs is its square.
double AutoSynchronization::DriftAt(double gain) {
  return std::min(kDrift * std::pow(std::max(gain, 1.0), 2), kDriftMost);
}

// Where the derivative of tau / (1 + drift (tau - 1)) / (tau s + D) is zero.
double AutoSynchronization::BestPeriod(double step, double transfer, double drift) const {
  if (!(step > 0) || !std::isfinite(step)) return 1;
  return std::min(std::sqrt(transfer / step * (1 / drift - 1)),
                  1.0 * options_.synchronization.period_max);
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
    double useful = Useful(*whole, seen);
    if (synchronization == Synchronization::kDelayed) {
      useful = std::min(useful, WithoutSmallerBatches(*whole, situation));
    }
    candidates.push_back(
        {.plan = *std::move(whole), .useful = useful, .banned = Banned(synchronization, seen)});
  };
  if (in_force.synchronization != Synchronization::kEveryStep) {
    offer(Synchronization::kEveryStep, 1);
  }
  // Where a period was judged, in a former group, that says more of drift than the gain does.
  const bool returns = !judged_ && period_most_ > 0;
  const double gain = returns || seen.rounds().empty() ? 1 : seen.rounds().back().gain;
  auto period = static_cast<std::uint32_t>(
      BestPeriod(seen.StepSeconds(in_force.batch_sizes), *seen.TransferSeconds(), DriftAt(gain)));
  if (returns) period = std::min(period, period_most_);
  // Once one was judged by the loss, longer ones are tried in steps.
  const bool longer = period > (IsPeriodic(in_force) ? in_force.period : 1);
  if (period >= 2 && (longer ? !judged_ : IsPeriodic(in_force))) {
    offer(Synchronization::kPeriodic, period);
  }
  if (in_force.synchronization == Synchronization::kDelayed) return candidates;
  if (OffersDelay()) {
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
  if (best == nullptr || !(best->useful > now * (1 + gain_least_.value()))) {
    promising_since_.reset();
    return std::nullopt;
  }
  const double gain = best->useful / std::max(now, std::numeric_limits<double>::min()) - 1;
  if (!Persists(*best, gain, situation.seen.seconds())) return std::nullopt;
  // A link that broke in must not wait for another axis's canary to end.
  if (situation.other_on_trial && gain < kGainLarge) return std::nullopt;
  return Change(situation, *best, candidates);
}

// By kind, not by period: a period that moves with the measured transfer is the same promise.
bool AutoSynchronization::Persists(const Candidate& best, double gain, double seconds) {
  const Synchronization kind = best.plan.synchronization;
  if (!promising_since_ || promising_kind_ != kind) promising_since_ = seconds;
  promising_kind_ = kind;
  return gain >= kGainLarge || seconds - *promising_since_ >= kPromiseSeconds;
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
  decision.reason = TransferText(transfer, seen.SlowestLink()) + " against a step of " +
                    Figure(step) + " s: " + chosen + " should teach " + Percent(gain) +
                    " more in a second";
  gain_least_.Tire();
  const double rate = UsefulRate(situation.in_force, seen);
  promised_ = rate > 0 ? std::max(UsefulRate(to.plan, seen) / rate, kCreditMin) : 1;
  if (IsPeriodic(to.plan) && !judged_ && period_most_ > 0) {
    judged_ = true;  // in a former group
    promising_since_.reset();
    InForceFrom(situation.in_force.version + 1, seen.seconds());
  } else {
    Try(situation);
    proposal.trial = Trial::kBegins;
  }
  return proposal;
}

void AutoSynchronization::Try(const Situation& situation) {
  former_ = situation.in_force;
  trial_.emplace(ChangeTrial::Setting{.version_before = version_of_kind_,
                                      .version = situation.in_force.version + 1,
                                      .seconds_start = situation.seen.seconds(),
                                      .base_batch = static_cast<double>(options_.base_batch),
                                      .loss_floor = options_.synchronization.loss_floor});
  promising_since_.reset();
}

std::optional<Proposal> AutoSynchronization::Judge(const Situation& situation) {
  ChangeTrial::Judgement judgement = trial_->Look(situation.seen);
  if (judgement.verdict == ChangeTrial::Verdict::kOpen) return std::nullopt;
  Settle(situation.in_force, situation.seen);
  if (judgement.verdict == ChangeTrial::Verdict::kRegretted) {
    Proposal proposal = TakeBack(situation, judgement.reason);
    if (judgement.undo) proposal.trial = Trial::kUndone;
    return proposal;
  }
  guessed_ = false;
  InForceFrom(trial_->setting().version, trial_->setting().seconds_start);
  canary_due_ = situation.seen.seconds();
  if (!judged_ && IsPeriodic(situation.in_force)) {
    judged_ = true;
    const LossLine line = situation.seen.history().Fit(
        {.first = version_of_kind_, .end = situation.in_force.version + 1});
    const bool falls = line.fall > 2 * line.fall_error;
    shorter_ = !falls || GainOfDoubling(situation) < kCanaryGainFirst;
  }
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
  if (IsPeriodic(in_force)) {
    judged_ = true;
    canary_due_ = ban.until_seconds;
  }
  InForceFrom(in_force.version + 1, seen.seconds());
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

std::uint32_t AutoSynchronization::PeriodToTry(const Situation& situation) const {
  const Plan& in_force = situation.in_force;
  const std::uint32_t period = IsPeriodic(in_force) ? in_force.period : 1;
  if (shorter_) return period / kCanaryStep;
  if (GainOfDoubling(situation) < kCanaryGain) return period;
  return std::min(2 * period, options_.synchronization.period_max);
}

// Samples a second of twice the period over those of the one in force, less 1.
double AutoSynchronization::GainOfDoubling(const Situation& situation) const {
  const Plan& in_force = situation.in_force;
  const double step = situation.seen.StepSeconds(in_force.batch_sizes);
  const double transfer = *situation.seen.TransferSeconds() / in_force.period;
  return step > 0 ? (step + transfer) / (step + transfer / 2) - 1 : 0;
}

std::optional<Proposal> AutoSynchronization::TryPeriod(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (!judged_ || in_force.synchronization == Synchronization::kDelayed) return std::nullopt;
  if (seen.seconds() < canary_due_) return std::nullopt;
  const PeriodCanary::Setting setting = CanarySetting(in_force.version + 1, seen);
  if (!PeriodCanary::Comparable(setting, seen)) return std::nullopt;
  if (!IsPeriodic(in_force)) shorter_ = false;
  const std::uint32_t period = PeriodToTry(situation);
  const bool shorter = std::exchange(shorter_, !shorter_);
  canary_due_ = kCanaryPause * seen.seconds();
  if (period == in_force.period) return std::nullopt;
  Proposal proposal = ProposePeriod(situation, period);
  proposal.decision.reason = "tried out for " + Percent(PeriodCanary::kShare) +
                             " of the training time: whether " + (shorter ? "fewer" : "more") +
                             " local steps lead lower";
  const std::optional<Plan> whole = situation.complete(proposal.plan);
  if (!whole) return std::nullopt;
  proposal.decision.metric = kUsefulSamplesPerSecond;
  proposal.decision.predicted_gain =
      Useful(*whole, seen) / std::max(Useful(in_force, seen), std::numeric_limits<double>::min()) -
      1;
  if (!shorter && proposal.decision.predicted_gain < kCanaryGain) return std::nullopt;
  former_ = in_force;
  canary_.emplace(setting, seen);
  proposal.trial = Trial::kBegins;
  return proposal;
}

PeriodCanary::Setting AutoSynchronization::CanarySetting(std::uint64_t version,
                                                         const Observations& seen) const {
  return {.version_before = version_of_kind_,
          .version = version,
          .seconds_before = seconds_of_kind_,
          .seconds_start = seen.seconds(),
          .base_batch = static_cast<double>(options_.base_batch)};
}

Proposal AutoSynchronization::ProposePeriod(const Situation& situation,
                                            std::uint32_t period) const {
  Proposal proposal{.plan = situation.in_force};
  const bool one = period <= 1;
  Synchronize(proposal.plan, one ? Synchronization::kEveryStep : Synchronization::kPeriodic,
              std::max(period, 1u));
  proposal.decision.alternatives = {{ValueOf(situation.in_force, Axis::kSynchronization), 0}};
  return proposal;
}

std::optional<Proposal> AutoSynchronization::JudgePeriod(const Situation& situation) {
  const Observations& seen = situation.seen;
  const std::optional<PeriodCanary::Outcome> outcome = canary_->Look(seen);
  if (!outcome) return std::nullopt;
  guessed_ = false;
  const Plan& in_force = situation.in_force;
  const PeriodCanary::Setting setting = canary_->setting();
  canary_.reset();
  const bool longer = in_force.period > former_.period;
  if (outcome->Pays(longer ? 0 : PeriodCanary::kErrorsAtLast)) {
    InForceFrom(setting.version, setting.seconds_start);
    // What paid may pay again.
    shorter_ = !shorter_;
    canary_due_ = kCanaryGoesOn * seen.seconds();
    return std::nullopt;
  }
  canary_due_ = kCanaryPause * seen.seconds();
  InForceFrom(in_force.version + 1, seen.seconds());
  Proposal proposal = ProposePeriod(situation, former_.period);
  if (outcome->higher) proposal.trial = Trial::kUndone;
  outcome->Explain("another period", proposal.decision);
  proposal.decision.metric = kUsefulSamplesPerSecond;
  proposal.decision.predicted_gain =
      outcome->useful > 0 ? outcome->useful_before / outcome->useful - 1 : 0;
  return proposal;
}

}  // namespace tactus::policies
