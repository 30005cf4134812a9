// Who watches which job.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/id.h"
#include "coordinator/shell/event_history.h"

namespace tactus::service {

// One watcher. Called on the control thread.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  // Whose watch it is, as gRPC names it: "ipv4:10.0.0.1:5000". The same throughout.
  virtual const std::string& peer() const = 0;
  virtual void OnEvent(const SharedEvent& event) = 0;
  // No event comes after this one.
  virtual void OnEnd(const absl::Status& status) = 0;
};

// Hands events to the watchers of a job. One thread.
class JobWatchers {
 public:
  // Of all, of one host and of one connection: whoever opens watches and reads none takes a bounded
  // part of what there is.
  static constexpr std::size_t kWatchersMax = 4096;
  static constexpr std::size_t kOfHostMax = 1024;
  static constexpr std::size_t kOfConnectionMax = 100;
  // Calls of Beat without an event until a watcher gets a bookmark.
  static constexpr int kQuietBeatsMax = 5;

  // Errors: ResourceExhausted with the reason TOO_MANY_WATCHES, and nothing is changed. The other
  // owner is the watcher's call.
  absl::Status Add(JobId job, const std::shared_ptr<JobWatcher>& watcher);
  void Remove(const JobWatcher* watcher);

  bool Watched(JobId job) const { return watchers_.contains(job); }
  void Publish(JobId job, const SharedEvent& event);

  // Gives a bookmark, made by `bookmark`, to those who heard nothing for so many beats.
  void Beat(const std::function<SharedEvent(JobId)>& bookmark);

  // Ends the watches of a job, or all.
  void End(JobId job, const absl::Status& status);
  void EndAll(const absl::Status& status);

 private:
  struct Watching {
    std::shared_ptr<JobWatcher> watcher;
    int quiet_beats = 0;
  };

  void Leave(const Watching& gone);

  std::map<JobId, std::vector<Watching>> watchers_;  // no empty vectors
  std::map<const JobWatcher*, JobId> job_of_;
  std::map<std::string, std::size_t> of_connection_, of_host_;  // no zeros
};

// A peer without its port: "ipv4:10.0.0.1".
std::string HostOf(const std::string& peer);

}  // namespace tactus::service
