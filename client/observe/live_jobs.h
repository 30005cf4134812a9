// The jobs that are not over, as `tactus top` needs them.

#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Of a queue no more is read: it is read again every second.
inline constexpr std::size_t kQueuedJobsMax = 1000;

struct LiveJobs {
  // Each once: those that train or are about to, or stop doing so; then the queue, newest first, at
  // most kQueuedJobsMax; then the paused ones.
  v1::ListJobsResponse jobs{};
  bool more_queued = false;  // than are in `jobs`
};

// Errors: as those of a call.
absl::StatusOr<LiveJobs> FetchLiveJobs(api::Client& client);

}  // namespace tactus::client
