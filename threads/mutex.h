// A lock of which clang knows what it guards, and a condition to wait on under it.
//
// Members under a lock say ABSL_GUARDED_BY(mutex_), methods that want it held
// ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_); scripts/presubmit has clang check both.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace tactus::threads {

// A std::mutex.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // False: somebody holds it.
  [[nodiscard]] bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds a mutex from its construction to its end.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  // Takes over a mutex that this thread holds.
  MutexLock(Mutex& mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) : mutex_(mutex) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits end for no reason, too: call them in a loop over what is waited for. The loop stands where
// the lock is held, so that it is checked, which the body of a predicate would not be.
class Condition {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();  // the caller holds it on
  }
  // False: `end` has come.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(lock, end) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tactus::threads
