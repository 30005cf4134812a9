// Where the worker stands, for who asks why its group does not get on.

#pragma once

#include <atomic>
#include <cstdint>

#include "agent/collective/transport.h"
#include "agent/worker/messages.h"
#include "threads/mutex.h"

namespace tactus::worker {

// Written by the training thread, read by the link's, which is there when training hangs.
class Standpoint {
 public:
  // A micro-batch is done.
  void CountBatch() { ++batches_; }

  // Its group has met. The transport outlives the stay, which Leave ends.
  void Enter(std::uint64_t generation, collective::Transport& transport);
  void Leave();

  // Without what is the agent's.
  StandingMessage Now();

 private:
  std::atomic<std::uint64_t> batches_ = 0;

  threads::Mutex mutex_;
  std::uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  collective::Transport* transport_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: it is in no group
};

}  // namespace tactus::worker
