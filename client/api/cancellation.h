// Ending a stream or a call from another thread.

#pragma once

#include <set>

#include "base/time.h"
#include "threads/mutex.h"

namespace grpc {
class ClientContext;
}

namespace tactus::api {

// Given to the streams and calls that it can end; outlives them. Cancel() may be called by any
// thread, and ends those that begin later as well.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Cancel();
  bool cancelled() const;

  // For Client: a call that is to be ended, from its start to its end.
  void Add(grpc::ClientContext* context);
  void Remove(grpc::ClientContext* context);
  // For Client: returns after `delay`, or at once when cancelled.
  void Wait(Duration delay);

 private:
  // A thread of the caller's cancels while the client's is in a call: the one state that two share.
  mutable threads::Mutex mutex_;
  threads::Condition changed_;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tactus::api
