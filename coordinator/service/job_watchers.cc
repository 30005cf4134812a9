#include "coordinator/service/job_watchers.h"

#include <utility>

namespace tactus::service {

bool JobWatchers::Add(JobId job, const std::shared_ptr<JobWatcher>& watcher) {
  if (count_ == kWatchersMax) return false;
  watchers_[job].push_back(watcher);
  ++count_;
  return true;
}

void JobWatchers::Remove(const JobWatcher* watcher) {
  for (auto at = watchers_.begin(); at != watchers_.end();) {
    count_ -=
        std::erase_if(at->second, [watcher](const auto& one) { return one.get() == watcher; });
    at = at->second.empty() ? watchers_.erase(at) : std::next(at);
  }
}

void JobWatchers::Publish(JobId job, const v1::JobEvent& event) const {
  const auto found = watchers_.find(job);
  if (found == watchers_.end()) return;
  for (const std::shared_ptr<JobWatcher>& watcher : found->second) watcher->OnEvent(event);
}

void JobWatchers::End(JobId job, const absl::Status& status) {
  const auto found = watchers_.find(job);
  if (found == watchers_.end()) return;
  const std::vector<std::shared_ptr<JobWatcher>> ended = std::move(found->second);
  watchers_.erase(found);
  count_ -= ended.size();
  for (const std::shared_ptr<JobWatcher>& watcher : ended) watcher->OnEnd(status);
}

void JobWatchers::EndAll(const absl::Status& status) {
  while (!watchers_.empty()) End(watchers_.begin()->first, status);
}

}  // namespace tactus::service
