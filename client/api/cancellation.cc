#include "client/api/cancellation.h"

#include <grpcpp/grpcpp.h>

namespace tactus::api {

void Cancellation::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  changed_.notify_all();
}

bool Cancellation::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void Cancellation::Add(grpc::ClientContext* context) {
  const std::lock_guard lock(mutex_);
  contexts_.insert(context);
  if (cancelled_) context->TryCancel();
}

void Cancellation::Remove(grpc::ClientContext* context) {
  const std::lock_guard lock(mutex_);
  contexts_.erase(context);
}

void Cancellation::Wait(Duration delay) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, delay, [this] { return cancelled_; });
}

}  // namespace tactus::api
