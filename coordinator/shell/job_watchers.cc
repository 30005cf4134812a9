#include "coordinator/shell/job_watchers.h"

#include <algorithm>
#include <utility>

#include "runtime/status.h"

namespace tactus::service {
namespace {

void CountDown(std::map<std::string, std::size_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  if (--found->second == 0) counts.erase(found);
}

std::size_t Count(const std::map<std::string, std::size_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

absl::Status TooMany(std::size_t most, const std::string& whose) {
  return runtime::WithReason(
      absl::ResourceExhaustedError("watch: " + std::to_string(most) + " watches of " + whose +
                                   " are open, which is all that are allowed"),
      {.reason = "TOO_MANY_WATCHES", .metadata = {{"limit", std::to_string(most)}}});
}

}  // namespace

std::string HostOf(const std::string& peer) {
  const bool with_port = peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
  return with_port ? peer.substr(0, peer.rfind(':')) : peer;
}

absl::Status JobWatchers::Add(JobId job, const std::shared_ptr<JobWatcher>& watcher) {
  const std::string& connection = watcher->peer();
  const std::string host = HostOf(connection);
  if (Count(of_connection_, connection) >= kOfConnectionMax) {
    return TooMany(kOfConnectionMax, "this connection");
  }
  if (Count(of_host_, host) >= kOfHostMax) return TooMany(kOfHostMax, "this host");
  if (job_of_.size() >= kWatchersMax) return TooMany(kWatchersMax, "this coordinator");
  watchers_[job].push_back({.watcher = watcher});
  job_of_[watcher.get()] = job;
  ++of_connection_[connection];
  ++of_host_[host];
  return absl::OkStatus();
}

void JobWatchers::Leave(const Watching& gone) {
  CountDown(of_connection_, gone.watcher->peer());
  CountDown(of_host_, HostOf(gone.watcher->peer()));
  job_of_.erase(gone.watcher.get());
}

void JobWatchers::Remove(const JobWatcher* watcher) {
  const auto job = job_of_.find(watcher);
  if (job == job_of_.end()) return;
  const auto entry = watchers_.find(job->second);
  const auto place = std::ranges::find_if(
      entry->second, [watcher](const Watching& one) { return one.watcher.get() == watcher; });
  const Watching gone = std::move(*place);
  entry->second.erase(place);
  if (entry->second.empty()) watchers_.erase(entry);
  Leave(gone);
}

// Over a copy: a watcher that is too far behind removes itself.
void JobWatchers::Publish(JobId job, const SharedEvent& event) {
  const auto found = watchers_.find(job);
  if (found == watchers_.end()) return;
  for (Watching& watching : found->second) watching.quiet_beats = 0;
  const std::vector<Watching> all = found->second;
  for (const Watching& watching : all) watching.watcher->OnEvent(event);
}

void JobWatchers::Beat(const std::function<SharedEvent(JobId)>& bookmark) {
  // First gathered, then told: a watcher that is too far behind removes itself.
  std::vector<std::pair<JobId, std::shared_ptr<JobWatcher>>> due;
  for (auto& [job, watchers] : watchers_) {
    for (Watching& watching : watchers) {
      if (++watching.quiet_beats < kQuietBeatsMax) continue;
      watching.quiet_beats = 0;
      due.emplace_back(job, watching.watcher);
    }
  }
  for (const auto& [job, watcher] : due) watcher->OnEvent(bookmark(job));
}

void JobWatchers::End(JobId job, const absl::Status& status) {
  const auto found = watchers_.find(job);
  if (found == watchers_.end()) return;
  // Off the books before they are told: a watcher that removes itself then finds nothing to do.
  const std::vector<Watching> ended = std::move(found->second);
  watchers_.erase(found);
  for (const Watching& watching : ended) Leave(watching);
  for (const Watching& watching : ended) watching.watcher->OnEnd(status);
}

void JobWatchers::EndAll(const absl::Status& status) {
  while (!watchers_.empty()) End(watchers_.begin()->first, status);
}

}  // namespace tactus::service
