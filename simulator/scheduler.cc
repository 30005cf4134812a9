#include "simulator/scheduler.h"

#include <algorithm>
#include <utility>

namespace tactus::simulator {

void Scheduler::At(Instant time, Callback callback) {
  std::size_t slot = slots_.size();
  if (free_slots_.empty()) {
    slots_.push_back(std::move(callback));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = std::move(callback);
  }
  heap_.push_back({std::max(time, now_), sequence_++, slot});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

bool Scheduler::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  const Entry next = heap_.back();
  heap_.pop_back();
  now_ = next.time;
  // Out of its slot before it runs: what it schedules may take the slot, or move all of them.
  const Callback callback = std::exchange(slots_[next.slot], nullptr);
  free_slots_.push_back(next.slot);
  callback();
  return true;
}

}  // namespace tactus::simulator
