// The last events of jobs that are watched, so that a watch that broke can go on.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// An event as it is handed to any number of watchers; the history and the watchers' queues share
// it.
using SharedEvent = std::shared_ptr<const v1::JobEvent>;

// Numbers the events of all jobs and keeps the newest of those that were watched once. A resume
// token names a job by its uid, this life of the coordinator, and the last event seen. One thread.
class EventHistory {
 public:
  static constexpr std::size_t kEventsMax = 256;  // of a job
  static constexpr std::size_t kOverMax = 1024;   // jobs that are over
  // Of all jobs; the oldest events go first.
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;

  // `life`: differs from that of every other process; letters and digits.
  explicit EventHistory(std::string life) : life_(std::move(life)) {}

  // Keeps the job's events from now on.
  void Keep(JobId job, const std::string& uid);
  bool Keeps(JobId job) const { return rings_.contains(job); }

  // Numbers the event and gives it its token. Requires: Keeps(job).
  SharedEvent Add(JobId job, v1::JobEvent event);

  // Behind all events so far.
  std::string Token(const std::string& uid) const;

  // The events behind the token, oldest first. Errors: InvalidArgument, no token of this job;
  // OutOfRange with the reason WATCH_EXPIRED, some of them are not kept.
  absl::StatusOr<std::vector<SharedEvent>> After(JobId job, const std::string& uid,
                                                 const std::string& token) const;

  // The job is over: its last events are kept as long as there is room.
  void Over(JobId job);
  void Forget(JobId job);

  std::size_t bytes() const { return bytes_; }

 private:
  struct Ring {
    std::string uid;
    std::uint64_t from = 0;  // events with greater numbers are all here
    std::deque<std::uint64_t> numbers;
  };
  struct Kept {
    JobId job;
    SharedEvent event;
    std::size_t bytes = 0;
  };

  std::string TokenAt(const std::string& uid, std::uint64_t number) const;
  void DropOldest(Ring& ring);

  const std::string life_;
  std::map<JobId, Ring> rings_;
  std::map<std::uint64_t, Kept> events_;  // by number
  std::deque<JobId> over_;                // oldest first; may name some that were forgotten
  std::uint64_t last_number_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tactus::service
