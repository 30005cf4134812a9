// Who watches which job.

#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/id.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// One watcher. Called on the control thread.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  virtual void OnEvent(const v1::JobEvent& event) = 0;
  // No event comes after this one.
  virtual void OnEnd(const absl::Status& status) = 0;
};

// Hands events to the watchers of a job. One thread.
class JobWatchers {
 public:
  static constexpr std::size_t kWatchersMax = 4096;

  // False, and nothing changed, when there are kWatchersMax. The other owner is the watcher's call.
  [[nodiscard]] bool Add(JobId job, const std::shared_ptr<JobWatcher>& watcher);
  void Remove(const JobWatcher* watcher);

  bool Watched(JobId job) const { return watchers_.contains(job); }
  void Publish(JobId job, const v1::JobEvent& event) const;

  // Ends the watches of a job, or all.
  void End(JobId job, const absl::Status& status);
  void EndAll(const absl::Status& status);

 private:
  std::map<JobId, std::vector<std::shared_ptr<JobWatcher>>> watchers_;  // no empty vectors
  std::size_t count_ = 0;
};

}  // namespace tactus::service
