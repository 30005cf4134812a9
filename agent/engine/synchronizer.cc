#include "agent/engine/synchronizer.h"

#include "agent/engine/gradient_facts.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"

namespace tactus::engine {

std::vector<std::unique_ptr<Synchronizer>> AllSynchronizers(Member& member, Group& group) {
  std::vector<std::unique_ptr<Synchronizer>> all;
  all.push_back(MakeDelayedRounds(member, group));
  all.push_back(MakeLeaderRounds(member, group));
  all.push_back(MakeNeighbourRounds(member, group));
  all.push_back(MakeLocalRounds(member, group));
  all.push_back(MakeGradientRounds(member, group));  // after those that take some of its plans
  return all;
}

std::optional<collective::Completion> Synchronizer::End(const Round& round, bool exhausted) {
  if (!exhausted) return std::nullopt;
  return collective::Completion{.finished = round.finished, .at = round.finished};
}

collective::Progress Synchronizer::Follow(Round&) { return group_.combination().Follow({}); }

void Synchronizer::Scale(float factor, std::span<float> vector) {
  if (factor != 1) member_.device.Scale(factor, vector);
}

void Synchronizer::ScaleSum(const Round& round, std::span<float> vector) {
  const auto samples =
      static_cast<float>(round.InUnits(static_cast<double>(round.replica_samples)));
  if (samples > 0) Scale(round.aggregator->FactorOfSum(samples), vector);
}

cuda::RoundGate Synchronizer::GateOf(const Round& round, double clip_norm) const {
  const auto samples = static_cast<double>(member_.ledger.reserved());
  return {.samples = samples,
          .divisor = samples > 0 ? round.aggregator->Divisor(round.InUnits(samples)) : 1,
          .clip_norm = clip_norm};
}

void Synchronizer::SetRate(Round& round, double samples, std::uint32_t contributors) const {
  // The gain of AdaScale is for a mean of several gradients: a single one has no measured noise.
  const bool alone = round.rule == policies::LearningRateRule::kAdascale && contributors < 2;
  round.rate = member_.learning_rate.Next(
      alone ? policies::LearningRateRule::kConstant : round.rule, samples);
}

void Synchronizer::Learn(Round& round, const Combined& combined, bool useful) {
  const Aggregator& aggregator = *round.aggregator;
  const double own_divisor =
      aggregator.Divisor(round.InUnits(static_cast<double>(round.replica_samples)));
  round.gradient_norm2 = combined.own_norm2 / (own_divisor * own_divisor);
  if (!useful) return;
  ++member_.steps;
  policies::UpdateFacts facts = aggregator.FactsOf(combined.lanes, round.spread, combined.norm2);
  if (round.sums_norm2) {
    facts.contributors = ContributorsOf(round);
    facts.samples_gradient_norm2 = *round.sums_norm2;
  }
  if (!policies::TellsNoise(round.encoding)) facts.contributors = 0;
  member_.learning_rate.Applied(round.rule, facts);
}

}  // namespace tactus::engine
