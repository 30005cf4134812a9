#include "coordinator/shell/watch_queue.h"

#include <algorithm>
#include <utility>

namespace tactus::service {

bool WatchQueue::Push(SharedEvent event) {
  const v1::JobEvent::EventCase kind = event->event_case();
  const std::size_t bytes = event->ByteSizeLong();
  if (kind == v1::JobEvent::kJob && Count(kind) == kJobsMax) return false;
  // A single event may be larger: refused, it could never be told.
  if (!events_.empty() && bytes_ + bytes > kBytesMax) return false;
  if (kind == v1::JobEvent::kProgress || kind == v1::JobEvent::kBookmark) DropOldest(kind);
  if (kind == v1::JobEvent::kDecision && Count(kind) == kDecisionsMax) DropOldest(kind);
  events_.push_back({.event = std::move(event), .bytes = bytes});
  bytes_ += bytes;
  return true;
}

SharedEvent WatchQueue::Pop() {
  if (events_.empty()) return nullptr;
  Waiting oldest = std::move(events_.front());
  events_.pop_front();
  bytes_ -= oldest.bytes;
  return std::move(oldest.event);
}

std::size_t WatchQueue::Count(v1::JobEvent::EventCase kind) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      events_, [kind](const Waiting& waiting) { return waiting.event->event_case() == kind; }));
}

void WatchQueue::DropOldest(v1::JobEvent::EventCase kind) {
  const auto oldest = std::ranges::find_if(
      events_, [kind](const Waiting& waiting) { return waiting.event->event_case() == kind; });
  if (oldest == events_.end()) return;
  bytes_ -= oldest->bytes;
  events_.erase(oldest);
}

}  // namespace tactus::service
