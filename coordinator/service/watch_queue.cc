#include "coordinator/service/watch_queue.h"

#include <algorithm>
#include <utility>

namespace tactus::service {

bool WatchQueue::Push(v1::JobEvent event) {
  const v1::JobEvent::EventCase kind = event.event_case();
  if (kind == v1::JobEvent::kJob && Count(kind) == kJobsMax) return false;
  if (kind == v1::JobEvent::kProgress) DropOldest(kind);
  if (kind == v1::JobEvent::kDecision && Count(kind) == kDecisionsMax) DropOldest(kind);
  events_.push_back(std::move(event));
  return true;
}

std::optional<v1::JobEvent> WatchQueue::Pop() {
  if (events_.empty()) return std::nullopt;
  v1::JobEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::size_t WatchQueue::Count(v1::JobEvent::EventCase kind) const {
  return static_cast<std::size_t>(std::ranges::count(events_, kind, &v1::JobEvent::event_case));
}

void WatchQueue::DropOldest(v1::JobEvent::EventCase kind) {
  const auto oldest = std::ranges::find(events_, kind, &v1::JobEvent::event_case);
  if (oldest != events_.end()) events_.erase(oldest);
}

}  // namespace tactus::service
