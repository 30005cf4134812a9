// Where the agent's parts find the channel to the coordinator.

#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "threads/mutex.h"

namespace tactus::agent {

// A connection shows a certificate once, so there is another channel once there is another
// certificate. Calls that run stay with theirs. Copies share what they hold. From any thread.
class ChannelSource {
 public:
  // Also where a channel is asked for that stays.
  ChannelSource(std::shared_ptr<grpc::Channel> channel)  // NOLINT(google-explicit-constructor)
      : state_(std::make_shared<State>()) {
    Set(std::move(channel));
  }

  std::shared_ptr<grpc::Channel> Get() const {
    const threads::MutexLock lock(state_->mutex);
    return state_->channel;
  }

  void Set(std::shared_ptr<grpc::Channel> channel) const {
    const threads::MutexLock lock(state_->mutex);
    state_->channel = std::move(channel);
  }

 private:
  struct State {
    mutable threads::Mutex mutex;
    std::shared_ptr<grpc::Channel> channel ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_;  // shared by all who call the coordinator
};

}  // namespace tactus::agent
