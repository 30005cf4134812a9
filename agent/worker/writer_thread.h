// The thread beside training that writes files from copies in memory.

#pragma once

#include <functional>
#include <thread>

#include "threads/mutex.h"

namespace tactus::worker {

// One piece of work at a time, for all who write: a disk that is slow gets fewer files, not a queue
// of them. The thread begins with the first. All calls: the training thread.
class WriterThread {
 public:
  WriterThread() = default;
  // Waits for what runs; who gave it can be asked to give it up first.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  bool idle();

  // Begins, and returns. What the work did is seen by who found the thread idle later.
  // Requires: idle().
  void Begin(std::function<void()> work);

  // Returns when it is idle.
  void Wait();

 private:
  void Run();

  threads::Mutex mutex_;
  threads::Condition changed_;
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);  // empty: idle
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tactus::worker
