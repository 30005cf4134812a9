#include "agent/collective/tcp_transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/collective/mesh_collectives.h"
#include "agent/collective/tcp_mesh.h"
#include "base/check.h"
#include "threads/mutex.h"

namespace tactus::collective {
namespace {

// Carries it out on the transport's thread. False: the mesh is over.
bool Perform(const Operation& operation, MeshCollectives& mesh) {
  switch (operation.kind) {
    case Operation::Kind::kAllReduceSum:
      return mesh.AllReduceSum(operation.buffer);
    case Operation::Kind::kBroadcast:
      return mesh.Broadcast(operation.buffer, operation.partner);
    case Operation::Kind::kBarrier:
      return mesh.Barrier();
    case Operation::Kind::kExchange:
      return mesh.Exchange(operation.partner, operation.outgoing, operation.incoming);
    case Operation::Kind::kConversation:
      return mesh.Converse(*operation.conversation);
    case Operation::Kind::kRootSum:
    case Operation::Kind::kAllGather:
      break;  // they are conversations
  }
  TACTUS_CHECK(false);
}

// Between two looks at the others while nothing is under way.
constexpr Duration kBetweenLooks = Seconds(0.02);

// Between two questions whether to wait on.
constexpr Duration kBetweenQuestions = Seconds(0.05);

// A collective's place in the queue. It stays where it is until the collective is done.
struct Ticket {
  std::uint64_t number = 0;  // collectives started before it
  Instant finished = {};     // once it is done or has failed
};

// The collectives of one member, in order. Starts and waits come from the member's thread, Run is
// the transport's thread, Abort may come from any.
class OperationQueue {
 public:
  OperationQueue(const TcpMeeting& meeting, std::unique_ptr<TcpMesh> mesh)
      : now_(meeting.now), give_up_(meeting.give_up_collective), mesh_(std::move(mesh)) {}

  // Appends an operation and gives the ticket its number.
  void Start(const Operation& operation, Ticket& ticket) {
    const threads::MutexLock lock(mutex_);
    ticket = {.number = started_++, .finished = over_at_};
    if (over_.empty()) entries_.push_back({.operation = operation, .ticket = &ticket});
    work_.NotifyOne();
  }

  Progress Poll(const Ticket& ticket) {
    const threads::MutexLock lock(mutex_);
    return At(ticket);
  }

  // Waits for the operation's end.
  Completion Wait(const Ticket& ticket) {
    while (give_up_ && !EndsWithin(kBetweenQuestions, ticket)) {
      if (const std::string reason = give_up_(); !reason.empty()) Abort(reason);
    }
    const threads::MutexLock lock(mutex_);
    while (At(ticket) == Progress::kRunning) done_.Wait(mutex_);
    const Progress progress = At(ticket);
    return {.progress = progress,
            .finished = ticket.finished,
            .at = now_(),
            .reason = progress == Progress::kFailed ? over_ : ""};
  }

  // Ends the thread and fails what it has not finished; the first reason stays.
  void Abort(const std::string& reason) {
    const threads::MutexLock lock(mutex_);
    if (abort_reason_.empty()) abort_reason_ = reason.empty() ? "aborted" : reason;
    if (mesh_ != nullptr) mesh_->Interrupt();
    work_.NotifyOne();
  }

  Awaiting awaiting() {
    const threads::MutexLock lock(mutex_);
    Awaiting awaiting{.collective = !entries_.empty()};
    if (mesh_ == nullptr) return awaiting;
    awaiting.bytes_moved = mesh_->bytes_moved();
    if (const std::optional<int> peer = mesh_->awaited()) awaiting.peers = {*peer};
    return awaiting;
  }

  double TakeLinkRate() {
    const threads::MutexLock lock(mutex_);
    return mesh_ != nullptr ? mesh_->TakeLinkRate() : 0;
  }

  std::vector<int> failed() {
    const threads::MutexLock lock(mutex_);
    return failed_ ? std::vector<int>{*failed_} : std::vector<int>();
  }

  // The thread: works off the queue until the group is over, then closes the connections.
  void Run() {
    PerformAll();
    const std::unique_ptr<TcpMesh> mesh = TakeMesh();  // closed last, which takes a while
    const std::string mesh_failure = mesh->failure();
    mesh->ReleaseMemory();
    const threads::MutexLock lock(mutex_);
    if (!failed_) failed_ = mesh->failed();
    over_ = abort_reason_.empty() ? mesh_failure : abort_reason_;
    over_at_ = now_();
    for (const Entry& entry : entries_) entry.ticket->finished = over_at_;
    entries_.clear();
    done_.NotifyAll();
  }

 private:
  struct Entry {
    Operation operation = {};
    Ticket* ticket = nullptr;  // lives until the operation is done
  };

  void PerformAll() {
    MeshCollectives collectives(Mesh());
    while (true) {
      const std::optional<Operation> operation = Next();
      if (!operation || !Perform(*operation, collectives)) return;
      FinishFirst();
    }
  }

  TcpMesh& Mesh() {
    const threads::MutexLock lock(mutex_);
    return *mesh_;
  }

  // From now on Abort finds none.
  std::unique_ptr<TcpMesh> TakeMesh() {
    const threads::MutexLock lock(mutex_);
    return std::move(mesh_);
  }

  // Waits for an operation. Empty: the group was aborted.
  std::optional<Operation> Next() {
    const threads::MutexLock lock(mutex_);
    while (abort_reason_.empty() && entries_.empty()) {
      const bool called = work_.WaitUntil(mutex_, DeadlineAfter(kBetweenLooks));
      // Who computes is to learn now that it does so in vain, not when it needs the others.
      if (!called && !failed_) failed_ = mesh_->LookForClosed();
    }
    if (!abort_reason_.empty()) return std::nullopt;
    return entries_.front().operation;
  }

  bool EndsWithin(Duration limit, const Ticket& ticket) {
    const auto end = DeadlineAfter(limit);
    const threads::MutexLock lock(mutex_);
    while (At(ticket) == Progress::kRunning) {
      if (!done_.WaitUntil(mutex_, end)) return false;
    }
    return true;
  }

  void FinishFirst() {
    const threads::MutexLock lock(mutex_);
    entries_.front().ticket->finished = now_();
    entries_.pop_front();
    ++finished_;
    done_.NotifyAll();
  }

  Progress At(const Ticket& ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ticket.number < finished_) return Progress::kDone;
    return over_.empty() ? Progress::kRunning : Progress::kFailed;
  }

  const std::function<Instant()> now_;
  const std::function<std::string()> give_up_;

  threads::Mutex mutex_;
  threads::Condition work_;
  threads::Condition done_;
  // Null once the thread is about to end. The mesh is the thread's, Abort only interrupts it.
  std::unique_ptr<TcpMesh> mesh_ ABSL_GUARDED_BY(mutex_);
  // Numbers finished_, finished_ + 1, ...; the first is under way.
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string abort_reason_ ABSL_GUARDED_BY(mutex_);  // empty: nobody aborted
  // Why the group is over and all memory is free again; empty before.
  std::string over_ ABSL_GUARDED_BY(mutex_);
  Instant over_at_ ABSL_GUARDED_BY(mutex_) = {};
  std::optional<int> failed_ ABSL_GUARDED_BY(mutex_);  // the first whose connection has
};

class MeshCollective : public Collective {
 public:
  MeshCollective(std::shared_ptr<OperationQueue> queue, const Operation& operation)
      : queue_(std::move(queue)) {
    queue_->Start(operation, ticket_);
  }
  ~MeshCollective() override { queue_->Wait(ticket_); }

  Progress Poll() override { return queue_->Poll(ticket_); }
  Completion Wait() override { return queue_->Wait(ticket_); }

 private:
  const std::shared_ptr<OperationQueue> queue_;  // shared with the transport and its thread
  Ticket ticket_;                                // written by the queue
};

class TcpTransport : public Transport {
 public:
  TcpTransport(const TcpMeeting& meeting, std::unique_ptr<TcpMesh> mesh)
      : rank_(mesh->rank()),
        size_(mesh->size()),
        queue_(std::make_shared<OperationQueue>(meeting, std::move(mesh))),
        thread_([queue = queue_] { queue->Run(); }) {}

  ~TcpTransport() override {
    queue_->Abort("this member has left the group");
    thread_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Collective> Start(const Operation& operation) override {
    return std::make_unique<MeshCollective>(queue_, operation);
  }

  double TakeLinkRate() override { return queue_->TakeLinkRate(); }
  Awaiting awaiting() override { return queue_->awaiting(); }
  std::vector<int> failed() override { return queue_->failed(); }
  void Abort(const std::string& reason) override { queue_->Abort(reason); }

 private:
  // Constant after construction.
  const int rank_;
  const int size_;
  const std::shared_ptr<OperationQueue> queue_;  // shared with the thread and the handles
  std::thread thread_;
};

}  // namespace

ConnectedTransport ConnectTcp(const TcpMeeting& meeting) {
  ConnectedTransports connected = ConnectTcp(meeting, 1);
  if (connected.transports.empty()) return {.reason = connected.reason, .own = connected.own};
  return {.transport = std::move(connected.transports.front())};
}

ConnectedTransports ConnectTcp(const TcpMeeting& meeting, std::size_t count,
                               const std::vector<std::vector<int>>& parts, std::size_t each) {
  TACTUS_CHECK(meeting.size >= 1 && meeting.rank >= 0 && meeting.rank < meeting.size);
  TACTUS_CHECK(meeting.exchange && meeting.now && count >= 1 && each >= 1);
  ConnectedTransports connected;
  if (meeting.size == 1) {
    const bool given_up = meeting.exchange("alone").size() != 1;
    if (given_up) return {.reason = "the group was given up before it was connected"};
    for (std::size_t i = 0; i < count; ++i) {
      connected.transports.push_back(std::move(MakeInProcessGroup(1, meeting.now).front()));
    }
    return connected;
  }
  const WantedMeshes wanted{.count = count, .parts = parts, .each = each};
  for (std::unique_ptr<TcpMesh>& mesh :
       TcpMesh::Connect(meeting, wanted, connected.reason, &connected.own)) {
    connected.transports.push_back(std::make_unique<TcpTransport>(meeting, std::move(mesh)));
  }
  return connected;
}

}  // namespace tactus::collective
