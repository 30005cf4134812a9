// What the handles and the two threads of a member of an NCCL group share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/heartbeat.h"
#include "agent/collective/nccl_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"
#include "cuda/nccl.h"
#include "cuda/stream_events.h"
#include "threads/mutex.h"

namespace tactus::collective {

// A collective's place in the queue.
struct NcclTicket {
  // Through what it goes. Empty buffers go nowhere.
  enum class Route { kNowhere, kDevice, kSignals };
  enum class Stage { kWaiting, kInStream, kOver };

  Operation operation = {};
  Route route = Route::kNowhere;
  std::uint64_t number = 0;           // collectives that this member started before
  cuda::OwnedEvent before = nullptr;  // in the compute stream: the buffer is filled
  cuda::OwnedEvent done = nullptr;    // in the transport's stream
  Stage stage = Stage::kWaiting;
  Instant finished = {};  // once it is done or has failed
};

// The collectives of one member, in order. Start, Poll and Wait come from the member's thread,
// RunCalls and RunWatch are the transport's two threads, Abort and Leave may come from any.
class NcclGroup : public std::enable_shared_from_this<NcclGroup> {
 public:
  // What a group has of the device: made before the members meet.
  struct DeviceParts {
    cuda::OwnedStream stream = nullptr;  // of the collectives
    cuda::OwnedEvent quiet = nullptr;
    cuda::OwnedFlag lost = nullptr;
  };

  // The meeting without its exchange and with its heartbeat taken out; the communicator is ready.
  NcclGroup(NcclMeeting meeting, std::unique_ptr<Heartbeat> heartbeat,
            std::unique_ptr<cuda::nccl::Communicator> communicator, DeviceParts parts);

  std::shared_ptr<NcclTicket> Start(const Operation& operation);
  Progress Poll(const NcclTicket& ticket);
  Completion Wait(const NcclTicket& ticket);
  // As Collective's; waits until the collective is in the stream.
  Progress WaitOnDevice(const NcclTicket& ticket);
  const std::uint32_t* lost() const { return lost_.get(); }

  // As Transport's. A failure to deregister ends the group.
  bool Register(std::span<float> memory) { return communicator_->Register(memory); }
  void Deregister();

  Awaiting awaiting();
  // As far as what is not on the device tells.
  std::vector<int> failed();

  // Ends the group; the first reason stays.
  void Abort(const std::string& reason);
  // Ends it in good order when nothing is under way.
  void Leave();

  // Makes the calls, until the group ends.
  void RunCalls();
  // Watches, ends the group when there is reason, and frees what it had.
  void RunWatch();

  // Whether a thread may never end. Requires: RunWatch has returned.
  bool hangs() const { return hangs_; }

 private:
  void EndWith(const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Instant at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(int tries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Progress At(const NcclTicket& ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckCommunicator() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckMembers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishAwaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NcclTicket* first() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return entries_.empty() ? nullptr : entries_.front().get();
  }

  // These want it not held.
  cuda::OwnedEvent TakeEvent(std::string& failure);
  std::shared_ptr<NcclTicket> NextCall();
  void Called(NcclTicket& ticket);
  // When those that were started before are launched, of all groups of the order.
  std::string QueueInTurn(NcclTicket& ticket);
  std::string Queue(NcclTicket& ticket);
  std::string AwaitTurn(const NcclTicket& ticket);
  std::string Signal(NcclTicket& ticket);
  std::string Ending();
  // Ends what NCCL and the stream still do. False: it did not end within the limit.
  bool EndDevice(bool in_good_order);
  bool AwaitQuiet();

  std::string WhatOf(const NcclTicket& ticket) const;

  // Constant after construction; the communicator and the transports synchronise themselves, as
  // far as they are used from several threads.
  const NcclMeeting meeting_;
  const std::unique_ptr<Heartbeat> heartbeat_;  // of the watching thread
  const std::unique_ptr<cuda::nccl::Communicator> communicator_;
  const cuda::OwnedStream stream_;
  const cuda::OwnedEvent quiet_;  // the end of all that was ever queued on the stream
  // Raised, while the lock is held, between the last look at what is done and the first thing that
  // ends what is not.
  const cuda::OwnedFlag lost_;

  // Of the watching thread.
  bool hangs_ = false;
  int looks_ = 0;

  // A lock of its own: who asks waits for no call of NCCL or the driver.
  threads::Mutex awaiting_mutex_;
  Awaiting awaiting_ ABSL_GUARDED_BY(awaiting_mutex_);

  threads::Mutex mutex_;
  threads::Condition calls_;    // something for RunCalls
  threads::Condition changed_;  // a collective is done, or the group is ending or over
  // Numbers finished_ and on; shared with handles. The tickets are guarded, too.
  std::deque<std::shared_ptr<NcclTicket>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<cuda::OwnedEvent> spare_events_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t called_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of the next one for RunCalls
  std::uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  Instant finished_at_ ABSL_GUARDED_BY(mutex_) = {};  // when the last one was done
  bool calls_over_ ABSL_GUARDED_BY(mutex_) = false;   // RunCalls has ended
  bool reaping_ ABSL_GUARDED_BY(mutex_) = true;       // false: what ends now was aborted
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;      // the member leaves in good order
  std::string ending_ ABSL_GUARDED_BY(mutex_);        // why the group ends; empty while it does not
  std::string over_
      ABSL_GUARDED_BY(mutex_);  // the same, once the memory of all collectives is free again
  Instant over_at_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace tactus::collective
