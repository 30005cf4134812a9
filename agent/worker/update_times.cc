#include "agent/worker/update_times.h"

#include <algorithm>

namespace tactus::worker {

void UpdateTimes::Note(std::uint64_t round, Instant edge, Instant now) {
  if (edge == edge_) return;  // the round goes on
  edge_ = edge;
  seconds_[round] = ToSeconds(std::max(Duration{}, now - edge));
}

double UpdateTimes::Take(std::uint64_t round) {
  const auto found = seconds_.find(round);
  const double seconds = found == seconds_.end() ? 0 : found->second;
  seconds_.erase(seconds_.begin(), seconds_.upper_bound(round));
  return seconds;
}

}  // namespace tactus::worker
