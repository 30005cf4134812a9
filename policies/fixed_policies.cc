#include "policies/fixed_policies.h"

#include <algorithm>

#include "policies/figures.h"
#include "policies/plan_names.h"

namespace tactus::policies {

std::string FixedBatch::Start(Plan& first, const Observations& seen) {
  const std::uint32_t size =
      std::clamp(options_.per_worker, options_.batch_min, options_.batch_max);
  first.batch_sizes.assign(seen.members(), size);
  return "fixed: " + std::to_string(size) + " samples for every worker";
}

std::optional<Proposal> FixedBatch::Decide(const Situation&) { return std::nullopt; }

std::string FixedSynchronization::Start(Plan& first, const Observations& seen) {
  if (seen.alone()) {
    Synchronize(first, Synchronization::kEveryStep, 1);
    return "every_step: " + std::string(seen.WhyAlone());
  }
  Synchronize(first, synchronization_, period_);
  return ValueOf(first, Axis::kSynchronization) + ": as the job asks";
}

std::optional<Proposal> FixedSynchronization::Decide(const Situation&) { return std::nullopt; }

std::string FixedSynchronization::Follow(Plan& plan, const Observations&) const {
  if (plan.synchronization == Synchronization::kEveryStep) return {};
  const std::uint32_t before = plan.period;
  Synchronize(plan, plan.synchronization, period_);
  // A delayed round ends by itself: its period is a bound, of which there is nothing to tell.
  if (plan.period == before || plan.synchronization == Synchronization::kDelayed) return {};
  return "the period follows the batch: a round has at most " + std::to_string(kRoundSamplesMax) +
         " samples";
}

std::string FixedAggregation::Start(Plan& first, const Observations&) {
  first.aggregation = aggregation_;
  return std::string(NameOf(aggregation_)) + ": as the job asks";
}

std::optional<Proposal> FixedAggregation::Decide(const Situation&) { return std::nullopt; }

std::string FixedLearningRate::Start(Plan& first, const Observations&) {
  first.learning_rate_rule = rule_;
  return std::string(NameOf(rule_)) + ": as the job asks";
}

std::optional<Proposal> FixedLearningRate::Decide(const Situation&) { return std::nullopt; }

std::string FixedEncoding::Start(Plan& first, const Observations& seen) {
  const std::string why = WhyDense(seen);
  first.encoding = why.empty() ? encoding_ : Encoding::kDense;
  if (!why.empty()) return "dense: " + why;
  std::string reason = std::string(NameOf(encoding_)) + ": as the job asks";
  if (!TellsNoise(encoding_)) reason += "; " + std::string(kHidesNoise);
  return reason;
}

// A clause; empty: the encoding is right.
std::string FixedEncoding::WhyDense(const Observations& seen) const {
  if (encoding_ == Encoding::kDense) return {};
  if (seen.alone()) return std::string(seen.WhyAlone());
  const std::string name(NameOf(encoding_));
  const StartingGroup& group = seen.group();
  if (!group.Knows(encoding_)) return "not all workers know " + name + ", which is newer than one";
  const std::uint32_t replicas = seen.members() / replica_members_;
  const double share = ShareOf(encoding_, replicas, options_);
  if (share < 1) return {};
  return "among " + std::to_string(replicas) +
         (replica_members_ == 1 ? " workers " : " replicas ") + name + " would send " +
         Figure(share) + " times as much";
}

std::optional<Proposal> FixedEncoding::Decide(const Situation&) { return std::nullopt; }

}  // namespace tactus::policies
