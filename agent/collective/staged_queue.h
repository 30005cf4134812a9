// What the handles and the thread of a member of a staged group share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collective/staged_pieces.h"
#include "agent/collective/staged_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"
#include "cuda/stream_events.h"
#include "threads/mutex.h"

namespace tactus::collective {

// A collective's place in the queue. It stays where it is until the collective is done.
struct StagedTicket {
  std::uint64_t number = 0;  // collectives started before it
  Instant finished = {};     // once it is done or has failed
};

// The collectives of one member, in order. Start, Poll and Wait come from the member's thread, Run
// is the transport's thread, Abort may come from any.
class StagedQueue {
 public:
  StagedQueue(StagedMember member, Staging staging)
      : device_(member.device),
        compute_stream_(member.compute_stream),
        host_(std::move(member.host)),
        now_(std::move(member.now)),
        staging_(std::move(staging)) {}

  Transport& host() { return *host_; }

  // Appends an operation and gives the ticket its number.
  void Start(const Operation& operation, StagedTicket& ticket);

  Progress Poll(const StagedTicket& ticket) {
    const threads::MutexLock lock(mutex_);
    return At(ticket);
  }

  // Waits for the operation's end.
  Completion Wait(const StagedTicket& ticket);

  // Ends the thread and fails what it has not finished; the first reason stays.
  void Abort(const std::string& reason);

  // Of the pieces that travel: what still comes down from the device is awaited of nobody else.
  Awaiting awaiting() { return host_->awaiting(); }
  std::vector<int> failed() { return host_->failed(); }

  // The thread: works off the queue until the group is over.
  void Run();

 private:
  // A collective that waits for its turn.
  struct Entry {
    StagedOperation staged{};
    cuda::OwnedEvent before = nullptr;  // in the compute stream; null: nothing is to be copied
  };

  // A piece between its way down and its way up.
  struct Piece {
    StagedOperation staged{};
    std::size_t number = 0;  // of the collective's pieces
    StagingSlot* slot = nullptr;
    std::unique_ptr<Collective> travel = nullptr;  // null: it is still coming down

    bool last() const { return number + 1 == staged.pieces; }
  };

  // Of the thread. They return why the group is over, empty while it is not.
  std::string TakeIn();
  std::string TakeNext();
  std::string CutNext();
  std::string SendOff();
  std::unique_ptr<Collective> StartOnHost(const Operation& piece);
  std::string Land();
  void End(const std::string& reason);
  void FinishFirst();

  cuda::OwnedEvent TakeEvent(std::string& failure);
  Progress At(const StagedTicket& ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ticket.number < finished_) return Progress::kDone;
    return over_.empty() ? Progress::kRunning : Progress::kFailed;
  }

  // Constant after construction.
  const int device_;
  const cuda::Stream compute_stream_;
  const std::unique_ptr<Transport> host_;  // the thread's, but for Abort and what may be asked
  const std::function<Instant()> now_;

  // Of the thread.
  Staging staging_;
  std::optional<Entry> cut_;    // the collective whose pieces are being taken in
  std::size_t next_piece_ = 0;  // of it
  std::size_t taken_ = 0;       // pieces so far, of all collectives
  std::deque<Piece> pieces_;    // those that travel, then those that come down

  threads::Mutex mutex_;
  threads::Condition work_;
  threads::Condition done_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);          // not yet taken in
  std::deque<StagedTicket*> tickets_ ABSL_GUARDED_BY(mutex_);  // of all that is not done
  std::vector<cuda::OwnedEvent> spare_events_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string abort_reason_ ABSL_GUARDED_BY(mutex_);  // empty: nobody aborted
  // Why the group is over and all memory is free again; empty before.
  std::string over_ ABSL_GUARDED_BY(mutex_);
  Instant over_at_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace tactus::collective
