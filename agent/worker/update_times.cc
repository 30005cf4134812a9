#include "agent/worker/update_times.h"

#include <algorithm>

namespace tactus::worker {

void UpdateTimes::Note(std::uint64_t round, Instant edge, Instant now) {
  if (edge == edge_) return;  // the round goes on
  edge_ = edge;
  seconds_.Add(round, ToSeconds(std::max(Duration{}, now - edge)));
}

}  // namespace tactus::worker
