#include "policies/goodput_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "policies/batch_axis.h"
#include "policies/figures.h"
#include "policies/proportional_shares.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"
#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

constexpr int kDoublingSteps = 4;  // totals tried from one to its double

double Sum(const std::vector<std::uint32_t>& sizes) {
  return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
}

}  // namespace

GoodputBatch::GoodputBatch(const BatchOptions& options, double base_batch)
    : options_(options), base_batch_(base_batch), split_(options) {}

std::string GoodputBatch::Start(Plan& first, const Observations& seen) {
  promising_.reset();
  rested_ = TrainingWait::From(seen);
  seconds_ = seen.seconds();
  fixed_cost_ = {};
  BatchDecision decision = split_.Start(seen.group());
  first.batch_sizes = std::move(decision.batch_sizes);
  return std::move(decision.reason);
}

std::optional<Proposal> GoodputBatch::Decide(const Situation& situation) {
  const double passed =
      situation.seen.seconds() - std::exchange(seconds_, situation.seen.seconds());
  gain_least_.Rest(passed);
  ++rested_.rounds;
  if (promising_) ++promising_->rounds;
  LookAtCost(situation);
  // The shares first: Goodput() counts on all members taking equally long for a step.
  if (std::optional<Proposal> proposal = Split(situation)) return proposal;
  const Observations& seen = situation.seen;
  if (situation.other_on_trial || !seen.SpeedsKnown() || !seen.NoiseScale() ||
      !seen.TransferSeconds()) {
    promising_.reset();
    return std::nullopt;
  }
  const double goodput_now = Goodput(situation, Sum(situation.in_force.batch_sizes));
  const Choice best = Best(situation);
  if (!Due(seen, best.goodput > goodput_now * (1 + gain_least_.value()))) return std::nullopt;
  gain_least_.Tire();
  return Resize(situation, best, goodput_now);
}

// Of delayed rounds the batch is an outcome, and the first round under a plan may be the former's.
void GoodputBatch::LookAtCost(const Situation& situation) {
  const Plan& in_force = situation.in_force;
  if (in_force.synchronization == Synchronization::kDelayed || situation.seen.rounds().empty()) {
    return;
  }
  if (situation.seen.rounds().back().plan_version != in_force.version) return;
  fixed_cost_.Look(Sum(in_force.batch_sizes), situation.seen);
}

bool GoodputBatch::Due(const Observations& seen, bool promising) {
  if (!promising) {
    promising_.reset();
    return false;
  }
  if (!promising_) promising_ = TrainingWait::From(seen);
  if (!promising_->Over(seen, kPersistenceSeconds, kRoundsMin)) return false;
  if (!rested_.Over(seen, kRestSeconds, kRoundsMin)) return false;
  promising_.reset();
  rested_ = TrainingWait::From(seen);
  return true;
}

std::optional<Proposal> GoodputBatch::Split(const Situation& situation) {
  split_.SetTotal(static_cast<std::uint64_t>(Sum(situation.in_force.batch_sizes)));
  BatchDecision decision = split_.Decide(situation.in_force.batch_sizes);
  if (decision.batch_sizes.empty()) return std::nullopt;
  return ProposeShares(situation, std::move(decision));
}

double GoodputBatch::Goodput(const Situation& situation, double total) const {
  const double now = Sum(situation.in_force.batch_sizes);
  const double step = total / (situation.seen.SpeedSum() * fixed_cost_.SpeedUp(now, total));
  const double seconds =
      UpdateSeconds(situation.in_force, step, situation.seen.TransferSeconds().value_or(0));
  return UsefulSamples(total, {.rule = situation.in_force.learning_rate_rule,
                               .base_batch = base_batch_,
                               .noise_scale = situation.seen.NoiseScale()}) /
         seconds;
}

// Each local step is one of a member's own samples: at a rate that does not follow them fewer than
// it was chosen for are too few on average, however many the mean of the members is made of.
double GoodputBatch::Least(const Situation& situation) const {
  const Plan& in_force = situation.in_force;
  const double members = situation.seen.members();
  const double least = members * options_.batch_min;
  const bool own =
      IsPeriodic(in_force) && in_force.learning_rate_rule == LearningRateRule::kConstant;
  return own ? std::max(least, std::min(Sum(in_force.batch_sizes), members * base_batch_)) : least;
}

GoodputBatch::Choice GoodputBatch::Best(const Situation& situation) const {
  const double members = situation.seen.members();
  const double now = Sum(situation.in_force.batch_sizes);
  const double most = static_cast<double>(kRoundSamplesMax / situation.in_force.period);
  const double least = Least(situation);
  Choice best;
  for (int k = -kDoublingSteps; k <= kDoublingSteps; ++k) {
    const double wanted = std::round(now * std::exp2(static_cast<double>(k) / kDoublingSteps));
    // A long period leaves less than n batch_min of a round's samples: then batch_min holds, as
    // clamp() needs its bounds in order.
    const double total =
        std::clamp(wanted, least, std::max(least, std::min(members * options_.batch_max, most)));
    const double goodput = Goodput(situation, total);
    if (goodput > best.goodput) best = {.total = total, .goodput = goodput};
  }
  return best;
}

Proposal GoodputBatch::Resize(const Situation& situation, const Choice& best,
                              double goodput_now) const {
  const Observations& seen = situation.seen;
  const double now = Sum(situation.in_force.batch_sizes);
  const double noise = *seen.NoiseScale();
  const double gain = best.goodput / goodput_now - 1;
  Proposal proposal{.plan = situation.in_force};
  proposal.plan.batch_sizes =
      ProportionalShares(seen.speeds(), static_cast<std::uint64_t>(best.total), options_);
  proposal.decision = {.inputs = {{"gradient noise scale", noise, "samples"},
                                  {"samples of a step", now, "samples"},
                                  {"transfer of a round", *seen.TransferSeconds(), "s"},
                                  {"useful samples/s", goodput_now, "samples/s"}},
                       .metric = kUsefulSamplesPerSecond,
                       .predicted_gain = gain,
                       .alternatives = {{Figure(now) + " samples", 0},
                                        {Figure(2 * now) + " samples",
                                         Goodput(situation, 2 * now) / goodput_now - 1},
                                        {Figure(now / 2) + " samples",
                                         Goodput(situation, now / 2) / goodput_now - 1}},
                       .reason = Figure(best.total) + " samples a step instead of " + Figure(now) +
                                 " teach " + Percent(gain) +
                                 " more in a second: gradients have a noise scale of " +
                                 Figure(noise) + " samples, and a round's transfer takes " +
                                 Figure(*seen.TransferSeconds()) + " s"};
  return proposal;
}

}  // namespace tactus::policies
