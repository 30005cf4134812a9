#include "policies/batch_axis.h"

#include <algorithm>
#include <utility>

#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

constexpr int kRoundsMost = 15;

double SamplesPerSecondOf(const Plan& plan, const Observations& seen) {
  const RoundForecast round = Forecast(plan, seen, *seen.TransferSeconds());
  return round.updates * round.samples / round.seconds;
}

// The share of a round that the member which computes longest does so: what shares can shorten.
double ComputeShare(const Plan& plan, const Observations& seen) {
  const Observations::Range range =
      seen.Find({.first = plan.version, .end = plan.version + 1, .most = kRoundsMost});
  double compute = 0;
  double seconds = 0;
  for (std::size_t at = range.from; at < range.to; ++at) {
    compute += seen.rounds()[at].compute_seconds;
    seconds += seen.rounds()[at].seconds;
  }
  return seconds > 0 ? std::min(compute / seconds, 1.0) : 1;
}

double GainInSamples(const Situation& situation, const Plan& to, double fall) {
  const Observations& seen = situation.seen;
  if (to.synchronization == Synchronization::kDelayed) {
    if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return fall / (1 - fall);
    return SamplesPerSecondOf(to, seen) / SamplesPerSecondOf(situation.in_force, seen) - 1;
  }
  const double saved = fall * ComputeShare(situation.in_force, seen);
  return saved / (1 - saved);
}

}  // namespace

Proposal ProposeShares(const Situation& situation, BatchDecision decision) {
  Proposal proposal{.plan = situation.in_force};
  proposal.plan.batch_sizes = std::move(decision.batch_sizes);
  const Observations& seen = situation.seen;
  const double step = seen.SpeedsKnown() ? seen.StepSeconds(situation.in_force.batch_sizes) : 0;
  proposal.decision = {
      .inputs = {{"longest step", step, "s"},
                 {"longest step with the new sizes", step * (1 - decision.predicted_gain), "s"},
                 {"transfer of a round", seen.TransferSeconds().value_or(0), "s"}},
      .metric = kSamplesPerSecond,
      .predicted_gain = GainInSamples(situation, proposal.plan, decision.predicted_gain),
      .alternatives = {{ValueOf(situation.in_force, Axis::kBatch), 0}},
      .reason = std::move(decision.reason)};
  return proposal;
}

std::string BatchAxis::Start(Plan& first, const Observations& seen) {
  BatchDecision decision = shares_.Start(seen.group());
  first.batch_sizes = std::move(decision.batch_sizes);
  return std::move(decision.reason);
}

std::optional<Proposal> BatchAxis::Decide(const Situation& situation) {
  BatchDecision decision = shares_.Decide(situation.in_force.batch_sizes);
  if (decision.batch_sizes.empty()) return std::nullopt;
  return ProposeShares(situation, std::move(decision));
}

}  // namespace tactus::policies
