#include "agent/collective/staged_queue.h"

#include <utility>

namespace tactus::collective {

void StagedQueue::Start(const Operation& operation, StagedTicket& ticket) {
  Entry entry{.staged = StageOf(operation, host_->rank())};
  std::string failure;
  if (entry.staged.down || entry.staged.up) {
    entry.before = TakeEvent(failure);
    if (failure.empty()) failure = cuda::Record(entry.before.get(), compute_stream_);
  }
  if (!failure.empty()) Abort(failure);
  const threads::MutexLock lock(mutex_);
  ticket = {.number = started_++, .finished = over_at_};
  if (!over_.empty()) return;
  waiting_.push_back(std::move(entry));
  tickets_.push_back(&ticket);
  work_.NotifyOne();
}

Completion StagedQueue::Wait(const StagedTicket& ticket) {
  const threads::MutexLock lock(mutex_);
  while (At(ticket) == Progress::kRunning) done_.Wait(mutex_);
  const Progress progress = At(ticket);
  return {.progress = progress,
          .finished = ticket.finished,
          .at = now_(),
          .reason = progress == Progress::kFailed ? over_ : ""};
}

void StagedQueue::Abort(const std::string& reason) {
  std::string first;
  {
    const threads::MutexLock lock(mutex_);
    if (abort_reason_.empty()) abort_reason_ = reason.empty() ? "aborted" : reason;
    first = abort_reason_;
    work_.NotifyOne();
  }
  host_->Abort(first);
}

void StagedQueue::Run() {
  std::string reason = cuda::UseDevice(device_);
  while (reason.empty()) {
    reason = TakeIn();
    if (reason.empty()) reason = SendOff();
    if (reason.empty()) reason = Land();
  }
  End(reason);
}

// Fills the slots that are free with what is there to be brought down; waits only where nothing is
// under way.
std::string StagedQueue::TakeIn() {
  while (pieces_.size() < Staging::kSlots) {
    if (!cut_) {
      if (std::string reason = CutNext(); !reason.empty()) return reason;
    }
    if (!cut_) return "";
    // What other members have been promised is done is to be done here, too.
    const bool barrier = cut_->staged.operation.kind == Operation::Kind::kBarrier;
    if (barrier && !pieces_.empty()) return "";
    if (std::string reason = TakeNext(); !reason.empty()) return reason;
  }
  return "";
}

// The next collective to be cut, if there is one or nothing else is to be done.
std::string StagedQueue::CutNext() {
  {
    const threads::MutexLock lock(mutex_);
    while (abort_reason_.empty() && waiting_.empty() && pieces_.empty()) work_.Wait(mutex_);
    if (!abort_reason_.empty()) return abort_reason_;
    if (waiting_.empty()) return "";
    cut_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next_piece_ = 0;
  return cut_->before == nullptr ? "" : staging_.Follow(cut_->before.get());
}

// The next piece of the collective that is being cut.
std::string StagedQueue::TakeNext() {
  pieces_.push_back(
      {.staged = cut_->staged, .number = next_piece_, .slot = &staging_.slot(taken_++)});
  ++next_piece_;
  const Piece& piece = pieces_.back();
  const std::string failure = staging_.BringDown(piece.staged, piece.number, *piece.slot);
  if (piece.last()) {
    const threads::MutexLock lock(mutex_);
    if (cut_->before != nullptr) spare_events_.push_back(std::move(cut_->before));
    cut_.reset();
  }
  return failure;
}

// Starts the travel of what is down, in order; waits for the copy only where nothing travels.
std::string StagedQueue::SendOff() {
  for (Piece& piece : pieces_) {
    if (piece.travel != nullptr) continue;
    if (piece.staged.down) {
      if (&piece != &pieces_.front() && !staging_.IsDown(*piece.slot)) return "";
      if (std::string failure = staging_.AwaitDown(*piece.slot); !failure.empty()) return failure;
    }
    piece.travel = StartOnHost(PieceOnHost(piece.staged, piece.number, *piece.slot));
  }
  return "";
}

std::unique_ptr<Collective> StagedQueue::StartOnHost(const Operation& piece) {
  switch (piece.kind) {
    case Operation::Kind::kRootSum:
      return host_->StartRootSum(piece.buffer, piece.partner);
    case Operation::Kind::kAllGather:
      return host_->StartAllGather(piece.own, piece.buffer);
    default:
      return host_->Start(piece);
  }
}

// Waits for the first piece that travels and brings it up.
std::string StagedQueue::Land() {
  Piece& piece = pieces_.front();
  const Completion completion = piece.travel->Wait();
  if (completion.progress == Progress::kFailed) return completion.reason;
  std::string failure = staging_.BringUp(piece.staged, piece.number, *piece.slot);
  if (!failure.empty()) return failure;
  const bool last = piece.last();
  pieces_.pop_front();
  if (last) FinishFirst();
  return "";
}

void StagedQueue::FinishFirst() {
  const threads::MutexLock lock(mutex_);
  tickets_.front()->finished = now_();
  tickets_.pop_front();
  ++finished_;
  done_.NotifyAll();
}

void StagedQueue::End(const std::string& reason) {
  host_->Abort(reason);
  pieces_.clear();  // their travels are waited for
  staging_.AwaitQuiet();
  const threads::MutexLock lock(mutex_);
  over_ = abort_reason_.empty() ? reason : abort_reason_;
  over_at_ = now_();
  for (StagedTicket* const ticket : tickets_) ticket->finished = over_at_;
  tickets_.clear();
  waiting_.clear();
  done_.NotifyAll();
}

cuda::OwnedEvent StagedQueue::TakeEvent(std::string& failure) {
  {
    const threads::MutexLock lock(mutex_);
    if (!spare_events_.empty()) {
      cuda::OwnedEvent event = std::move(spare_events_.back());
      spare_events_.pop_back();
      return event;
    }
  }
  cuda::OpenedEvent opened = cuda::OpenEvent();
  failure = opened.reason;
  return std::move(opened.event);
}

}  // namespace tactus::collective
