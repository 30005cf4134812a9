#include "policies/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

namespace tactus::policies {

double CheckpointInterval(double cost, double mean) {
  if (cost >= 2 * mean) return mean;
  const double ratio = cost / (2 * mean);
  return std::sqrt(2 * cost * mean) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

double MeanBetweenLosses(double worker_seconds, std::uint32_t losses, std::uint32_t workers) {
  const double time = ToSeconds(kWorkerPrior) + std::max(worker_seconds, 0.0);
  return time / ((1.0 + losses) * std::max(workers, 1u));
}

CheckpointSchedule::CheckpointSchedule(std::optional<Duration> every, double mean,
                                       CheckpointMark begin)
    : chosen_here_(!every), mean_(mean), interval_(every.value_or(kShortest)), last_(begin) {}

void CheckpointSchedule::Observe(const CheckpointCost& cost) {
  if (!chosen_here_) return;
  const double seconds = cost.still_seconds + kShareBeside * cost.beside_seconds;
  const double best = CheckpointInterval(std::max(seconds, 0.0), mean_);
  // Clamped in seconds, in which nothing overflows.
  interval_ = Seconds(std::clamp(best, ToSeconds(kShortest), ToSeconds(kLongest)));
}

}  // namespace tactus::policies
