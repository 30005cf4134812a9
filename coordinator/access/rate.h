// How often something may happen.

#pragma once

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "base/time.h"
#include "threads/mutex.h"

namespace tactus::access {

// A bucket that holds `burst` and fills at `per_second`: each Take takes 1. From any thread.
class Rate {
 public:
  struct Options {
    double burst = 10;      // >= 1
    double per_second = 1;  // > 0
  };
  explicit Rate(const Options& options) : options_(options), left_(options.burst) {}

  // False: not now.
  bool Take(Instant now) const {
    const threads::MutexLock lock(mutex_);
    left_ = std::min(options_.burst, left_ + ToSeconds(now - last_) * options_.per_second);
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  const Options options_;
  mutable threads::Mutex mutex_;
  mutable double left_ ABSL_GUARDED_BY(mutex_);
  mutable Instant last_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace tactus::access
