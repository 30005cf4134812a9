#include "agent/collective/nccl_group.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"

namespace tactus::collective {
namespace {

using cuda::nccl::Aborted;
using cuda::nccl::Standing;
using cuda::nccl::State;
using Kind = Operation::Kind;
using Route = NcclTicket::Route;
using Stage = NcclTicket::Stage;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kWatchInterval = std::chrono::milliseconds(1);
constexpr int kLooksToPublish = 100;                           // of the watch
constexpr auto kTurnInterval = std::chrono::milliseconds(20);  // between two looks at the end
constexpr auto kWaitInterval = std::chrono::microseconds(100);
// Most waits are short, and a sleep costs more than they do.
constexpr int kTriesAtOnce = 100;

Route RouteOf(const Operation& operation) {
  const bool no_buffer = operation.kind == Kind::kBarrier || operation.kind == Kind::kConversation;
  if (no_buffer) return Route::kSignals;
  const bool of_devices = operation.kind == Kind::kRootSum || operation.kind == Kind::kAllGather;
  if (of_devices) return operation.buffer.empty() ? Route::kNowhere : Route::kDevice;
  const void* const memory = operation.kind != Kind::kExchange ? operation.buffer.data()
                             : !operation.outgoing.empty()
                                 ? static_cast<const void*>(operation.outgoing.data())
                                 : operation.incoming.data();
  const std::size_t length = operation.kind != Kind::kExchange
                                 ? operation.buffer.size()
                                 : operation.outgoing.size() + operation.incoming.size();
  if (length == 0) return Route::kNowhere;
  return cuda::IsDeviceMemory(memory) ? Route::kDevice : Route::kSignals;
}

std::string InSeconds(Duration duration) { return std::to_string(ToSeconds(duration)) + " s"; }

}  // namespace

NcclGroup::NcclGroup(NcclMeeting meeting, std::unique_ptr<Heartbeat> heartbeat,
                     std::unique_ptr<cuda::nccl::Communicator> communicator, DeviceParts parts)
    : meeting_(std::move(meeting)),
      heartbeat_(std::move(heartbeat)),
      communicator_(std::move(communicator)),
      stream_(std::move(parts.stream)),
      quiet_(std::move(parts.quiet)),
      lost_(std::move(parts.lost)) {}

std::shared_ptr<NcclTicket> NcclGroup::Start(const Operation& operation) {
  auto ticket = std::make_shared<NcclTicket>();
  ticket->operation = operation;
  ticket->route = RouteOf(operation);
  std::string failure;
  if (ticket->route == Route::kDevice) {
    ticket->before = TakeEvent(failure);
    ticket->done = TakeEvent(failure);
    if (failure.empty()) failure = cuda::Record(ticket->before.get(), meeting_.compute_stream);
  }
  const threads::MutexLock lock(mutex_);
  ticket->number = started_++;
  ticket->finished = over_at_;
  if (!over_.empty()) return ticket;
  entries_.push_back(ticket);
  if (meeting_.order != nullptr && ticket->route == Route::kDevice) meeting_.order->Enter(this);
  if (!failure.empty()) EndWith(failure);
  calls_.NotifyOne();
  return ticket;
}

Progress NcclGroup::Poll(const NcclTicket& ticket) {
  const threads::MutexLock lock(mutex_);
  Reap();
  return At(ticket);
}

Completion NcclGroup::Wait(const NcclTicket& ticket) {
  const threads::MutexLock lock(mutex_);
  for (int tries = 0;; ++tries) {
    Reap();
    const Progress progress = At(ticket);
    if (progress != Progress::kRunning) {
      return {.progress = progress,
              .finished = ticket.finished,
              .at = meeting_.now(),
              .reason = progress == Progress::kFailed ? over_ : ""};
    }
    Pause(tries);
  }
}

// An event that was not recorded yet holds nobody up, so the call has to be through first: no
// kernel is waited for, and no other member but where NCCL connects to it for the first time.
Progress NcclGroup::WaitOnDevice(const NcclTicket& ticket) {
  if (ticket.route != Route::kDevice) return Wait(ticket).progress;
  const threads::MutexLock lock(mutex_);
  for (int tries = 0; At(ticket) == Progress::kRunning; ++tries) {
    if (ticket.stage == Stage::kInStream && ending_.empty()) {
      const std::string failure = cuda::WaitFor(meeting_.compute_stream, ticket.done.get());
      if (failure.empty()) return Progress::kRunning;
      EndWith(failure);
    }
    Pause(tries);
  }
  return At(ticket);
}

// Lets others go on before the next look at what is not done.
void NcclGroup::Pause(int tries) {
  if (tries >= kTriesAtOnce) {
    changed_.WaitUntil(mutex_, SteadyClock::now() + kWaitInterval);
    return;
  }
  mutex_.Unlock();
  std::this_thread::yield();
  mutex_.Lock();
}

void NcclGroup::Deregister() {
  const Standing standing = communicator_->Deregister();
  if (standing.state == State::kFailed) Abort(standing.reason);
}

void NcclGroup::Abort(const std::string& reason) {
  const threads::MutexLock lock(mutex_);
  EndWith(reason.empty() ? "aborted" : reason);
}

void NcclGroup::Leave() {
  const threads::MutexLock lock(mutex_);
  Reap();
  leaving_ = ending_.empty() && entries_.empty();
  EndWith("this member has left the group");
}

void NcclGroup::EndWith(const std::string& reason) {
  if (!ending_.empty()) return;
  ending_ = reason;
  calls_.NotifyAll();
  changed_.NotifyAll();
}

Progress NcclGroup::At(const NcclTicket& ticket) const {
  if (ticket.number < finished_) return Progress::kDone;
  return over_.empty() ? Progress::kRunning : Progress::kFailed;
}

// Takes from the queue what is done, in order.
void NcclGroup::Reap() {
  while (reaping_ && first() != nullptr) {
    const NcclTicket& ticket = *first();
    if (ticket.stage == Stage::kWaiting) return;
    if (ticket.stage == Stage::kOver) {
      Finish(ticket.finished);
      continue;
    }
    cuda::EventState state = cuda::Query(ticket.done.get());
    if (state.reached == cuda::Reached::kNot) return;
    if (state.reached == cuda::Reached::kFailed)
      return EndWith(WhatOf(ticket) + ": " + state.reason);
    Finish(meeting_.now());
  }
}

void NcclGroup::Finish(Instant at) {
  NcclTicket& ticket = *first();
  ticket.finished = std::max(at, finished_at_);
  finished_at_ = ticket.finished;
  for (cuda::OwnedEvent* const event : {&ticket.before, &ticket.done}) {
    if (*event != nullptr) spare_events_.push_back(std::move(*event));
  }
  entries_.pop_front();
  ++finished_;
  changed_.NotifyAll();
}

cuda::OwnedEvent NcclGroup::TakeEvent(std::string& failure) {
  {
    const threads::MutexLock lock(mutex_);
    if (!spare_events_.empty()) {
      cuda::OwnedEvent event = std::move(spare_events_.back());
      spare_events_.pop_back();
      return event;
    }
  }
  // Whoever starts a collective may be a thread of libtorch's, with any device.
  if (failure.empty()) failure = cuda::UseDevice(meeting_.device);
  cuda::OpenedEvent opened = cuda::OpenEvent();
  if (failure.empty()) failure = opened.reason;
  return std::move(opened.event);
}

void NcclGroup::RunCalls() {
  std::string failure = cuda::UseDevice(meeting_.device);
  while (failure.empty()) {
    const std::shared_ptr<NcclTicket> ticket = NextCall();
    if (ticket == nullptr) break;
    if (ticket->route == Route::kDevice) failure = QueueInTurn(*ticket);
    if (ticket->route == Route::kSignals) failure = Signal(*ticket);
    if (failure.empty()) Called(*ticket);
  }
  if (meeting_.order != nullptr) meeting_.order->Leave(this);
  const threads::MutexLock lock(mutex_);
  if (!failure.empty()) EndWith(failure);
  calls_over_ = true;
  changed_.NotifyAll();
}

// Waits for a collective to call. Null: the group ends.
std::shared_ptr<NcclTicket> NcclGroup::NextCall() {
  const threads::MutexLock lock(mutex_);
  while (ending_.empty() && called_ >= started_) calls_.Wait(mutex_);
  return ending_.empty() ? entries_[called_ - finished_] : nullptr;
}

void NcclGroup::Called(NcclTicket& ticket) {
  const threads::MutexLock lock(mutex_);
  ++called_;
  ticket.stage = ticket.route == Route::kDevice ? Stage::kInStream : Stage::kOver;
  changed_.NotifyAll();
  Reap();
}

std::string NcclGroup::QueueInTurn(NcclTicket& ticket) {
  LaunchOrder* const order = meeting_.order.get();
  if (order == nullptr) return Queue(ticket);
  while (!order->AwaitTurn(this, kTurnInterval)) {
    if (std::string ending = Ending(); !ending.empty()) return ending;
  }
  std::string failure = Queue(ticket);
  if (failure.empty()) order->Launched(this);
  return failure;
}

// Queues a collective on the stream. Only when NCCL has ended the call is the collective in the
// stream, and only then may the event be recorded behind it.
std::string NcclGroup::Queue(NcclTicket& ticket) {
  std::string failure = cuda::WaitFor(stream_.get(), ticket.before.get());
  if (!failure.empty()) return failure;
  const Operation& operation = ticket.operation;
  Standing standing;
  switch (operation.kind) {
    case Kind::kAllReduceSum:
      standing = communicator_->AllReduceSum(operation.buffer, stream_.get());
      break;
    case Kind::kBroadcast:
      standing = communicator_->Broadcast(operation.buffer, operation.partner, stream_.get());
      break;
    case Kind::kExchange:
      standing = communicator_->Exchange(operation.partner, operation.outgoing, operation.incoming,
                                         stream_.get());
      break;
    case Kind::kRootSum:
      standing = communicator_->RootSum(operation.buffer, operation.partner, stream_.get());
      break;
    case Kind::kAllGather:
      standing = communicator_->AllGather(operation.own, operation.buffer, stream_.get());
      break;
    case Kind::kBarrier:
    case Kind::kConversation:
      TACTUS_CHECK(false);  // they have another route
  }
  if (standing.state == State::kInProgress) {
    standing =
        cuda::nccl::Await(*communicator_, {.limit = Duration::max(),
                                           .now = meeting_.now,
                                           .give_up = [this] { return Ending(); },
                                           .what = WhatOf(ticket) + ": NCCL did not queue it"});
  }
  if (standing.state == State::kFailed) return standing.reason;
  return cuda::Record(ticket.done.get(), stream_.get());
}

Awaiting NcclGroup::awaiting() {
  const threads::MutexLock lock(awaiting_mutex_);
  return awaiting_;
}

std::vector<int> NcclGroup::failed() {
  const std::vector<int> beats = heartbeat_->failed();
  return beats.empty() ? meeting_.signals->failed() : beats;
}

// Whom NCCL waits for it does not tell, nor how far it is: what is done stands for bytes. Who takes
// no part in the heartbeat for long is one that stands still.
void NcclGroup::PublishAwaiting() {
  Awaiting awaiting{.bytes_moved = finished_};
  if (const NcclTicket* const next = first(); next != nullptr && ending_.empty()) {
    const cuda::EventState ready = next->before == nullptr
                                       ? cuda::EventState{.reached = cuda::Reached::kYes}
                                       : cuda::Query(next->before.get());
    if (ready.reached == cuda::Reached::kFailed) EndWith(WhatOf(*next) + ": " + ready.reason);
    awaiting.collective = ready.reached == cuda::Reached::kYes;
    if (next->route == NcclTicket::Route::kSignals) {
      awaiting.peers = meeting_.signals->awaiting().peers;
    } else if (next->operation.kind == Kind::kExchange) {
      awaiting.peers = {next->operation.partner};
    } else {
      awaiting.peers = heartbeat_->Missed(meeting_.now());
    }
  }
  const threads::MutexLock lock(awaiting_mutex_);
  awaiting_ = std::move(awaiting);
}

// Waits until all that was started before is done, as `signals` knows nothing of it.
std::string NcclGroup::AwaitTurn(const NcclTicket& ticket) {
  const threads::MutexLock lock(mutex_);
  for (int tries = 0; finished_ < ticket.number && ending_.empty(); ++tries) {
    Reap();
    Pause(tries);
  }
  return ending_;
}

std::string NcclGroup::Signal(NcclTicket& ticket) {
  if (std::string failure = AwaitTurn(ticket); !failure.empty()) return failure;
  const Operation& operation = ticket.operation;
  std::unique_ptr<Collective> collective;
  switch (operation.kind) {
    case Kind::kAllReduceSum:
      collective = meeting_.signals->StartAllReduceSum(operation.buffer);
      break;
    case Kind::kBroadcast:
      collective = meeting_.signals->StartBroadcast(operation.buffer, operation.partner);
      break;
    case Kind::kExchange:
      collective = meeting_.signals->StartExchange(operation.partner, operation.outgoing,
                                                   operation.incoming);
      break;
    case Kind::kBarrier:
      collective = meeting_.signals->StartBarrier();
      break;
    case Kind::kConversation:
      collective = meeting_.signals->StartConversation(*operation.conversation);
      break;
    case Kind::kRootSum:
    case Kind::kAllGather:
      TACTUS_CHECK(false);  // on the host they are conversations
  }
  const Completion completion = collective->Wait();
  if (completion.progress == Progress::kFailed) return WhatOf(ticket) + ": " + completion.reason;
  ticket.finished = completion.finished;
  return "";
}

std::string NcclGroup::Ending() {
  const threads::MutexLock lock(mutex_);
  return ending_;
}

void NcclGroup::RunWatch() {
  const std::string failure = cuda::UseDevice(meeting_.device);
  std::string reason;
  bool in_good_order = false;
  {
    const threads::MutexLock lock(mutex_);
    if (!failure.empty()) EndWith(failure);
    while (ending_.empty()) {
      Reap();
      CheckCommunicator();
      CheckMembers();
      if (looks_++ % kLooksToPublish == 0) PublishAwaiting();
      const auto next = SteadyClock::now() + kWatchInterval;
      while (ending_.empty() && changed_.WaitUntil(mutex_, next)) {
      }
    }
    Reap();
    reaping_ = false;
    cuda::Raise(lost_.get());
    reason = ending_;
    in_good_order = leaving_;
  }

  hangs_ = !EndDevice(in_good_order);
  if (hangs_) {
    reason +=
        "; NCCL did not end within " + InSeconds(meeting_.abort_limit) + ": the process has to end";
    if (meeting_.must_end) meeting_.must_end(reason);
  }

  const threads::MutexLock lock(mutex_);
  over_ = reason;
  over_at_ = meeting_.now();
  for (const std::shared_ptr<NcclTicket>& ticket : entries_) ticket->finished = over_at_;
  entries_.clear();
  changed_.NotifyAll();
}

void NcclGroup::CheckCommunicator() {
  const Standing standing = communicator_->Poll();
  if (standing.state == State::kFailed) EndWith("NCCL: " + standing.reason);
}

void NcclGroup::CheckMembers() {
  const Instant now = meeting_.now();
  const std::string& gone = heartbeat_->Look(now);
  if (gone.empty() || first() == nullptr) return;
  if (now - heartbeat_->gone_at() >= meeting_.grace) EndWith(gone);
}

// The others learn at once when something failed; when nothing did, they may still want what this
// member has sent them.
bool NcclGroup::EndDevice(bool in_good_order) {
  bool ended = true;
  if (in_good_order) {
    ended = communicator_->Leave({.limit = meeting_.leave_limit,
                                  .now = meeting_.now,
                                  .what = "leaving: not all that was sent has arrived"},
                                 meeting_.abort_limit, shared_from_this()) == Aborted::kYes;
  }
  const std::string reason = Ending();
  meeting_.signals->Abort(reason);
  heartbeat_->Abort(reason);
  if (!in_good_order) {
    ended = communicator_->Abort(meeting_.abort_limit, shared_from_this()) == Aborted::kYes;
  }
  return ended && AwaitQuiet();
}

// Waits until nothing is called and nothing runs in the stream.
bool NcclGroup::AwaitQuiet() {
  {
    const auto end = SteadyClock::now() + meeting_.abort_limit;
    const threads::MutexLock lock(mutex_);
    while (!calls_over_ && changed_.WaitUntil(mutex_, end)) {
    }
    if (!calls_over_) return false;
  }
  // A device that refuses is broken, and then nothing runs on it.
  if (!cuda::Record(quiet_.get(), stream_.get()).empty()) return true;
  for (Duration waited{}; waited < meeting_.abort_limit; waited += kWaitInterval) {
    if (cuda::Query(quiet_.get()).reached != cuda::Reached::kNot) return true;
    std::this_thread::sleep_for(kWaitInterval);
  }
  return false;
}

std::string NcclGroup::WhatOf(const NcclTicket& ticket) const {
  const Operation& operation = ticket.operation;
  const std::string floats = std::to_string(operation.buffer.size()) + " floats";
  const std::string partner = "rank " + std::to_string(operation.partner);
  const std::string place = " (collective " + std::to_string(ticket.number + 1) + ")";
  switch (operation.kind) {
    case Kind::kAllReduceSum:
      return "all-reduce of " + floats + place;
    case Kind::kBroadcast:
      return "broadcast of " + floats + " from " + partner + place;
    case Kind::kExchange:
      return "exchange with " + partner + ", " + std::to_string(operation.outgoing.size()) +
             " bytes out and " + std::to_string(operation.incoming.size()) + " in" + place;
    case Kind::kConversation:
      return "conversation" + place;
    case Kind::kRootSum:
      return "sum of " + floats + " at " + partner + place;
    case Kind::kAllGather:
      return "gathering of " + floats + place;
    case Kind::kBarrier:
      break;
  }
  return "barrier" + place;
}

}  // namespace tactus::collective
