#include "policies/auto_aggregation.h"

#include <algorithm>
#include <numeric>

#include "policies/figures.h"
#include "policies/gradient_noise.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"
#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

Plan With(const Plan& in_force, Aggregation aggregation) {
  Plan plan = in_force;
  plan.aggregation = aggregation;
  return plan;
}

double SamplesOfStep(const Plan& plan) {
  return std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), 0.0);
}

}  // namespace

double Disagreement(double orthogonality, std::uint32_t members) {
  if (members < 2) return 0;
  const double least = 1.0 / members;
  return std::clamp((orthogonality - least) / (1 - least), 0.0, 1.0);
}

double UsefulSamplesOfAdasum(const AdasumStep& step) {
  // r = S e: see StatisticalEfficiency().
  const double gain =
      step.batch / step.base_batch *
      StatisticalEfficiency(
          {.batch = step.batch, .base_batch = step.base_batch, .noise_samples = step.noise_scale});
  const double length = 1 + (step.members - 1.0) * step.disagreement;
  return step.base_batch * length * (2 - length / gain);
}

std::string AutoAggregation::Start(Plan& first, const Observations&) {
  first.aggregation = Aggregation::kAverage;
  rounds_wanted_ = kRounds;
  rounds_seen_ = 0;
  return "average until it is measured how far gradients agree";
}

std::optional<double> AutoAggregation::GainOfAdasum(const Situation& situation,
                                                    double disagreement) const {
  const Plan& in_force = situation.in_force;
  const Observations& seen = situation.seen;
  const std::optional<double> noise = seen.NoiseScale();
  const std::optional<double> transfer = seen.TransferSeconds();
  const double batch = SamplesOfStep(in_force);
  if (!noise || !transfer || !seen.SpeedsKnown() || !(batch > 0)) return std::nullopt;
  const double average = UsefulSamples(
      batch,
      {.rule = in_force.learning_rate_rule, .base_batch = base_batch_, .noise_scale = noise});
  const double adasum = UsefulSamplesOfAdasum({.batch = batch,
                                               .base_batch = base_batch_,
                                               .noise_scale = *noise,
                                               .disagreement = disagreement,
                                               .members = seen.members()});
  const bool measured = in_force.aggregation == Aggregation::kAdasum;
  const double of_average = measured ? *transfer / kTransfer : *transfer;
  const double of_adasum = kTransfer * of_average / ShareOf(in_force.encoding, seen.members());
  const double faster =
      Forecast(in_force, seen, of_average).seconds / Forecast(in_force, seen, of_adasum).seconds;
  return adasum / average * faster - 1;
}

std::optional<Proposal> AutoAggregation::Decide(const Situation& situation) {
  const Plan& in_force = situation.in_force;
  const std::optional<double> orthogonality = situation.seen.Orthogonality();
  if (!orthogonality || situation.seen.members() < 2) return std::nullopt;
  if (situation.other_on_trial) return std::nullopt;
  const double disagreement = Disagreement(*orthogonality, situation.seen.members());
  const std::optional<double> gain = GainOfAdasum(situation, disagreement);
  const bool wanted = in_force.aggregation == Aggregation::kAverage
                          ? !rate_is_auto_ && disagreement > kAbove && gain && *gain > kGainMin
                          : disagreement < kBelow;
  rounds_seen_ = wanted ? rounds_seen_ + 1 : 0;
  if (rounds_seen_ < rounds_wanted_) return std::nullopt;
  // Here, before it is known whether the change may be run: one that may not is asked for again
  // only after as many rounds.
  rounds_seen_ = 0;
  const bool adasum = in_force.aggregation == Aggregation::kAverage;
  const std::optional<Plan> whole =
      situation.complete(With(in_force, adasum ? Aggregation::kAdasum : Aggregation::kAverage));
  if (!whole) return std::nullopt;
  if (adasum && whole->learning_rate_rule != in_force.learning_rate_rule) return std::nullopt;
  rounds_wanted_ = std::min(2 * rounds_wanted_, kRoundsMax);
  return Change(situation, disagreement, gain.value_or(0));
}

Proposal AutoAggregation::Change(const Situation& situation, double disagreement, double gain) {
  const Plan& in_force = situation.in_force;
  const bool adasum = in_force.aggregation == Aggregation::kAverage;
  const std::uint32_t members = situation.seen.members();
  Proposal proposal{.plan = With(in_force, adasum ? Aggregation::kAdasum : Aggregation::kAverage)};
  const double orthogonality = *situation.seen.Orthogonality();
  const std::string measured = "(orthogonality " + Figure(orthogonality) + " between " +
                               Figure(1.0 / members) + ", equal, and 1, orthogonal)";
  proposal.decision = {
      .inputs = {{"orthogonality", orthogonality, ""},
                 {"orthogonality of equal gradients", 1.0 / members, ""},
                 {"share of the way to orthogonal", disagreement, ""},
                 {"gradient noise scale", situation.seen.NoiseScale().value_or(0), "samples"}},
      .metric = kUsefulSamplesPerSecond,
      // The way back is taken because adasum no longer helps: it never promises a loss.
      .predicted_gain = adasum ? gain : std::max(1 / (1 + gain) - 1, 0.0),
      .alternatives = {{ValueOf(in_force, Axis::kAggregation), 0}},
      .reason = adasum
                    ? "gradients differ " + measured +
                          ": their sum goes further than their mean, and adasum sums what differs"
                    : "gradients agree " + measured +
                          ": adasum would average them as well, which average does for less"};
  return proposal;
}

}  // namespace tactus::policies
