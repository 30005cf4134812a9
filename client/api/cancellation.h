// Ending a stream or a call from another thread.

#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/time.h"

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
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<grpc::ClientContext*> contexts_;  // by mutex_
  bool cancelled_ = false;                   // by mutex_
};

}  // namespace tactus::api
