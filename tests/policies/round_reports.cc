#include "tests/policies/round_reports.h"

#include <algorithm>

namespace tactus::policies {

std::vector<Report> ReportsOf(const Plan& plan, std::uint64_t round, const RoundFacts& facts) {
  double longest = 0;
  std::uint64_t samples = 0;
  for (std::size_t rank = 0; rank < plan.batch_sizes.size(); ++rank) {
    const std::uint64_t own = std::uint64_t{plan.batch_sizes[rank]} * plan.period;
    longest = std::max(longest, static_cast<double>(own) / facts.speeds[rank]);
    samples += own;
  }
  const double batch = static_cast<double>(samples);
  const double members = static_cast<double>(plan.batch_sizes.size());
  const bool window = plan.synchronization == Synchronization::kPeriodic;
  std::vector<Report> reports;
  for (std::size_t rank = 0; rank < plan.batch_sizes.size(); ++rank) {
    const std::uint64_t own = std::uint64_t{plan.batch_sizes[rank]} * plan.period;
    const double compute = static_cast<double>(own) / facts.speeds[rank];
    const double waited = longest + facts.transfer_seconds - compute;
    reports.push_back({.round = round,
                       .plan_version = plan.version,
                       .rank = static_cast<std::uint32_t>(rank),
                       .samples = own,
                       .steps = plan.period,
                       .compute_seconds = compute,
                       .blocked_seconds = waited,
                       .transfer_seconds = waited,
                       .round_seconds = longest + facts.transfer_seconds,
                       .gradient_norm2_global = 1 + facts.noise_scale / batch,
                       .samples_global = samples,
                       .loss_mean_global = facts.loss,
                       .local_samples_global = window ? samples - samples / plan.period : 0,
                       .local_loss_mean_global = window ? facts.loss : 0,
                       .nonfinite_members = facts.nonfinite_members,
                       .contributors = static_cast<std::uint32_t>(plan.batch_sizes.size()),
                       .samples_gradient_norm2 = batch + members * facts.noise_scale,
                       .gradient_samples = plan.aggregation == Aggregation::kAverage ? batch : 0,
                       .orthogonality = facts.orthogonality,
                       .learning_rate = facts.learning_rate,
                       .gain = facts.gain,
                       .progress = facts.progress});
  }
  return reports;
}

void ObserveRounds(Observations& seen, const Plan& plan, const Rounds& rounds,
                   const RoundFacts& facts) {
  for (int i = 0; i < rounds.count; ++i) {
    const std::uint64_t round = rounds.first + static_cast<std::uint64_t>(i);
    for (const Report& report : ReportsOf(plan, round, facts)) seen.Observe(report);
  }
}

Plan TwoMembers() { return {.version = 1, .batch_sizes = {32, 32}}; }

}  // namespace tactus::policies
