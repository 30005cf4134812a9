// Since when the job waits that waits longest.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/id.h"

namespace tactus::telemetry {

// One thread.
class QueueAge {
 public:
  // The job waits from `wall` [ns since 1970] on; where it waits already: since then.
  void Enter(JobId job, std::int64_t wall) {
    const auto [entry, fresh] = since_.try_emplace(job, wall);
    if (fresh) order_.emplace(wall, job);
  }

  // It waits no more, if it did.
  void Leave(JobId job) {
    const auto found = since_.find(job);
    if (found == since_.end()) return;
    order_.erase({found->second, job});
    since_.erase(found);
  }

  // [s since 1970]; empty: nobody waits.
  std::optional<double> Oldest() const {
    if (order_.empty()) return std::nullopt;
    return static_cast<double>(order_.begin()->first) / 1e9;
  }

 private:
  std::set<std::pair<std::int64_t, JobId>> order_;
  std::map<JobId, std::int64_t> since_;
};

}  // namespace tactus::telemetry
