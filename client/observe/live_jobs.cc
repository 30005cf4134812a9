#include "client/observe/live_jobs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace tactus::client {
namespace {

constexpr std::size_t kJobsMax = 100'000;  // not queued: whatever a server says

int PlaceOf(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_QUEUED) return 1;
  return job.state() == v1::JOB_STATE_PAUSED ? 2 : 0;
}

}  // namespace

absl::StatusOr<LiveJobs> FetchLiveJobs(api::Client& client) {
  // The queue first: a job that leaves it meanwhile is found twice rather than not at all.
  v1::ListJobsRequest queue;
  queue.set_filter("state=QUEUED");
  absl::StatusOr<v1::ListJobsResponse> queued = client.ListAllJobs(queue, kQueuedJobsMax + 1);
  if (!queued.ok()) return queued.status();
  v1::ListJobsRequest others;
  others.set_filter("state!=SUCCEEDED AND state!=FAILED AND state!=CANCELLED AND state!=QUEUED");
  absl::StatusOr<v1::ListJobsResponse> jobs = client.ListAllJobs(others, kJobsMax);
  if (!jobs.ok()) return jobs.status();

  LiveJobs live{.jobs = *std::move(jobs),
                .more_queued = static_cast<std::size_t>(queued->jobs_size()) > kQueuedJobsMax};
  std::set<std::string> seen;
  for (const v1::Job& job : live.jobs.jobs()) seen.insert(job.name());
  const int count = std::min(queued->jobs_size(), static_cast<int>(kQueuedJobsMax));
  for (int i = 0; i < count; ++i) {
    v1::Job& job = *queued->mutable_jobs(i);
    if (!seen.contains(job.name())) *live.jobs.add_jobs() = std::move(job);
  }
  std::ranges::stable_sort(*live.jobs.mutable_jobs(), {}, PlaceOf);
  return live;
}

}  // namespace tactus::client
