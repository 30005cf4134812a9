// A first-in first-out queue whose bound is part of its type: nothing here grows without limit.

#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "base/check.h"

namespace tactus {

// At most `CapacityMax` items. Push says no when full; the caller decides what is lost.
template <typename T, std::size_t CapacityMax>
class BoundedQueue {
 public:
  static constexpr std::size_t kCapacityMax = CapacityMax;

  // Appends `item`; false, and nothing changed, when the queue is full.
  [[nodiscard]] bool Push(T item) {
    if (items_.size() == CapacityMax) return false;
    items_.push_back(std::move(item));
    return true;
  }

  // Removes and returns the oldest item. Requires: not empty.
  T Pop() {
    TACTUS_CHECK(!items_.empty());
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  const T& Front() const {
    TACTUS_CHECK(!items_.empty());
    return items_.front();
  }

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  void Clear() { items_.clear(); }

 private:
  std::deque<T> items_;
};

}  // namespace tactus
