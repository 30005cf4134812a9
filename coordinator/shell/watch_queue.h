// What one watcher of a job has not been sent yet; bounded, whatever the watcher's pace.

#pragma once

#include <cstddef>
#include <deque>

#include "coordinator/shell/event_history.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Changes of the job are kept, all and in order. Of progress and of bookmarks only the newest
// waits, and of decisions the newest kDecisionsMax. A watcher that is behind by kJobsMax changes or
// kBytesMax is cut off: it watches anew, and gets the present state first. The events are shared by
// all who watch the job. One thread.
class WatchQueue {
 public:
  static constexpr std::size_t kJobsMax = 256;
  static constexpr std::size_t kDecisionsMax = 64;
  // A single event may be larger.
  static constexpr std::size_t kBytesMax = std::size_t{1} << 20;

  // False, and nothing changed, when the watcher has to be cut off.
  [[nodiscard]] bool Push(SharedEvent event);

  // The oldest event; null when there is none.
  SharedEvent Pop();

  std::size_t size() const { return events_.size(); }

 private:
  struct Waiting {
    SharedEvent event;
    std::size_t bytes = 0;
  };

  std::size_t Count(v1::JobEvent::EventCase kind) const;
  void DropOldest(v1::JobEvent::EventCase kind);

  std::deque<Waiting> events_;
  std::size_t bytes_ = 0;
};

}  // namespace tactus::service
