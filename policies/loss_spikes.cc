#include "policies/loss_spikes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "policies/median.h"

namespace tactus::policies {
namespace {

// Of which a change explains a change of the loss.
Plan WithoutShares(const Plan& plan) {
  const std::uint64_t total =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  Plan all = plan;
  all.version = 0;
  all.reason.clear();
  all.batch_sizes = {static_cast<std::uint32_t>(std::min(total, kRoundSamplesMax))};
  return all;
}

}  // namespace

std::optional<LossSpike> LossSpikes::Add(std::uint64_t round, double loss, const Plan& plan) {
  if (plan.version != plan_.version || plan_.batch_sizes.empty()) {
    Plan changed = WithoutShares(plan);
    Plan former = std::exchange(plan_, changed);
    plan_.version = plan.version;
    former.version = 0;
    if (former != changed) Reset();
  }
  if (!std::isfinite(loss)) return std::nullopt;
  if (loss <= 0) {
    Reset();
    return std::nullopt;
  }
  if (rounds_ == 0) first_ = round;
  sum_ += loss;
  if (++rounds_ < kBlock) return std::nullopt;
  const double mean = std::exchange(sum_, 0) / std::exchange(rounds_, 0);
  return Close(first_, mean);
}

std::optional<LossSpike> LossSpikes::Close(std::uint64_t first_round, double mean) {
  const double block = std::log(mean);
  if (calm_.size() >= kKnown) {
    const std::vector<double> calm(calm_.begin(), calm_.end());
    const double median = Median(calm);
    std::vector<double> distances;
    for (const double value : calm) distances.push_back(std::abs(value - median));
    const double deviation = 1.4826 * Median(distances);
    if (block > median + std::max(kDeviations * deviation, std::log(kFactor))) {
      if (++high_ == 1) since_ = first_round;
      if (high_ < kHigh) return std::nullopt;
      Reset();
      return LossSpike{.round = since_, .before = std::exp(median), .after = mean};
    }
  }
  high_ = 0;
  calm_.push_back(block);
  if (calm_.size() > kKept) calm_.pop_front();
  return std::nullopt;
}

void LossSpikes::Reset() {
  calm_.clear();
  rounds_ = high_ = 0;
  sum_ = 0;
}

}  // namespace tactus::policies
