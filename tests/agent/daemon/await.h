// Waiting for something that another thread or process does, with a deadline that only a broken
// test meets.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace tactus::agent {

inline constexpr std::chrono::seconds kPatience{60};

// One value handed from one thread to another, once.
template <typename T>
class Once {
 public:
  void Set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    changed_.notify_all();
  }

  bool IsSet() {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }

  // The value; empty when it did not come within kPatience.
  std::optional<T> Await() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return value_.has_value(); });
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

// True once the process is gone or a zombie; false when it lives on through kPatience. `pid` is a
// child, a grandchild, or any process that has not been waited for.
bool AwaitProcessEnd(int pid);

}  // namespace tactus::agent
