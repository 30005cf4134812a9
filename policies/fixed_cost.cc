#include "policies/fixed_cost.h"

#include <algorithm>

namespace tactus::policies {

void FixedCost::Look(double total, const Observations& seen) {
  if (total != total_) {
    former_total_ = total_;
    former_step_ = step_;
    total_ = total;
    since_ = TrainingWait::From(seen);
    step_ = 0;
  }
  const WholeRound& round = seen.rounds().back();
  double step = round.compute_seconds / std::max(round.steps, 1u);
  if (since_.rounds > 0) step = std::min(step, kOutlier * step_);
  since_.rounds = std::min(since_.rounds + 1, 1'000'000);
  step_ += (step - step_) / std::min(since_.rounds, kRoundsMost);
  if (former_total_ > 0 && since_.Over(seen, kSeconds, kRounds)) Learn();
}

void FixedCost::Learn() {
  const double smaller = std::min(total_, former_total_);
  const bool apart = std::max(total_, former_total_) >= kRatioLeast * smaller;
  const double longer = (step_ - former_step_) / (total_ - former_total_);  // [s] a sample
  const double fixed = former_step_ - longer * former_total_;
  former_total_ = 0;
  if (!apart) return;
  double found = longer > 0 ? fixed / longer : kShareMost * smaller;
  found = std::min(found, kShareMost * smaller);
  if (found < kShareLeast * smaller) found = 0;
  samples_ = samples_ ? (*samples_ + found) / 2 : found;
}

}  // namespace tactus::policies
