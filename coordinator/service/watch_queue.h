// What one watcher of a job has not been sent yet; bounded, whatever the watcher's pace.

#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Changes of the job are kept, all and in order. Of progress only the newest waits, and of
// decisions the newest kDecisionsMax. A watcher that is behind by kJobsMax changes is cut off: it
// watches anew, and gets the present state first. One thread.
class WatchQueue {
 public:
  static constexpr std::size_t kJobsMax = 256;
  static constexpr std::size_t kDecisionsMax = 64;

  // False, and nothing changed, when the watcher has to be cut off.
  [[nodiscard]] bool Push(v1::JobEvent event);

  // The oldest event; empty when there is none.
  std::optional<v1::JobEvent> Pop();

  std::size_t size() const { return events_.size(); }

 private:
  std::size_t Count(v1::JobEvent::EventCase kind) const;
  void DropOldest(v1::JobEvent::EventCase kind);

  std::deque<v1::JobEvent> events_;
};

}  // namespace tactus::service
