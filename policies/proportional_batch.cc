#include "policies/proportional_batch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "policies/figures.h"
#include "policies/proportional_shares.h"

namespace tactus::policies {

BatchDecision ProportionalBatch::Start(const StartingGroup& group) {
  stretches_.Start(group.members);
  slowdowns_.assign(group.members, "");
  forecasts_.Start();
  fresh_ = false;
  total_ = std::uint64_t{options_.per_worker} * group.members;
  gain_least_ = LeastGain(kGainMin, kGainLarge, kHalfLifeSeconds);
  const auto measured = [](double speed) { return speed > 0 && std::isfinite(speed); };
  if (group.speeds.size() == group.members && std::ranges::all_of(group.speeds, measured)) {
    const auto [slowest, fastest] = std::ranges::minmax(group.speeds);
    return {.batch_sizes = ProportionalShares(group.speeds, total_, options_),
            .reason = "shares follow the speeds that the workers tried out: " + Figure(slowest) +
                      " to " + Figure(fastest) + " samples/s"};
  }
  const std::vector<double> equal(group.members, 1.0);
  return {.batch_sizes = ProportionalShares(equal, total_, options_),
          .reason = "equal shares until speeds are measured"};
}

void ProportionalBatch::NoteSlowdown(const Report& report) {
  if (report.rank >= slowdowns_.size() || slowdowns_[report.rank] == report.slowdown) return;
  slowdowns_[report.rank] = report.slowdown;
  stretches_.Break();
  forecasts_.Shift();
}

void ProportionalBatch::Observe(const Report& report) {
  NoteSlowdown(report);
  const std::optional<SpeedStretch> stretch = stretches_.Observe(report);
  if (!stretch) return;
  forecasts_.Observe(*stretch, total_);
  fresh_ = true;
  gain_least_.Rest(stretch->seconds);
}

BatchDecision ProportionalBatch::Decide(const std::vector<std::uint32_t>& in_force) {
  if (in_force.empty() || in_force.size() != stretches_.members()) {
    return {.batch_sizes = {}, .reason = "left: the sizes in force are of another group"};
  }
  if (!std::exchange(fresh_, false)) {
    return {.batch_sizes = {}, .reason = "left: nothing new was measured"};
  }
  ShareForecast best = forecasts_.Best(in_force, total_);
  if (best.expected <= gain_least_.value()) {
    return {.batch_sizes = {},
            .reason = "left: other shares promise to shorten the round by " +
                      Percent(std::max(best.gain, 0.0)) + ", of which " +
                      Percent(std::max(best.expected, 0.0)) + " is to be expected, less than " +
                      Percent(gain_least_.value())};
  }
  if (best.expected < kGainLarge) gain_least_.Tire();
  const auto [slowest, fastest] = std::ranges::minmax_element(best.speeds);
  const double longest = LongestStep(in_force, best.speeds);
  const auto rank = static_cast<std::size_t>(slowest - best.speeds.begin());
  const std::string& slowdown = slowdowns_[rank];
  const std::uint32_t members = options_.replica_members;
  const std::string who =
      members == 1 ? "rank " + std::to_string(rank) : "replica " + std::to_string(rank / members);
  return {.batch_sizes = std::move(best.sizes),
          .reason = "shares follow speed: " + who + " computes " + Figure(*slowest * members) +
                    " samples/s against " + Figure(*fastest * members) + " on the fastest" +
                    (slowdown.empty() ? "" : ", slowed down by its device (" + slowdown + ")") +
                    "; round " + Figure(longest) + " s → " + Figure(longest * (1 - best.expected)) +
                    " s",
          .predicted_gain = best.expected};
}

}  // namespace tactus::policies
