#include "client/api/cancellation.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace tactus::api {

void Cancellation::Cancel() {
  const threads::MutexLock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  changed_.NotifyAll();
}

bool Cancellation::cancelled() const {
  const threads::MutexLock lock(mutex_);
  return cancelled_;
}

void Cancellation::Add(grpc::ClientContext* context) {
  const threads::MutexLock lock(mutex_);
  contexts_.insert(context);
  // Cancel() came before this call, and must not be missed by it.
  if (cancelled_) context->TryCancel();
}

void Cancellation::Remove(grpc::ClientContext* context) {
  const threads::MutexLock lock(mutex_);
  contexts_.erase(context);
}

void Cancellation::Wait(Duration delay) {
  const auto end = std::chrono::steady_clock::now() + delay;
  const threads::MutexLock lock(mutex_);
  while (!cancelled_ && changed_.WaitUntil(mutex_, end)) {
  }
}

}  // namespace tactus::api
