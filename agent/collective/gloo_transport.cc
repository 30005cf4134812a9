#include "agent/collective/gloo_transport.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "agent/collective/blocked_sigpipe.h"
#include "agent/collective/gloo_mesh.h"
#include "agent/collective/in_process.h"
#include "agent/collective/mesh_collectives.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

constexpr int kNoRoot = -1;  // an all-reduce

struct Operation {
  std::span<float> buffer;
  int root = kNoRoot;
};

// The collectives of one member, in order. Each has a number: the count of those before it. Starts
// and waits come from the member's thread, Run is the transport's thread, Abort may come from any.
class OperationQueue {
 public:
  explicit OperationQueue(std::unique_ptr<GlooMesh> mesh) : mesh_(std::move(mesh)) {}

  // Appends an operation. Returns its number.
  std::uint64_t Start(const Operation& operation) {
    const std::lock_guard lock(mutex_);
    if (over_.empty()) operations_.push_back(operation);
    work_.notify_one();
    return started_++;
  }

  Progress Poll(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return At(number);
  }

  // Waits for the operation's end; returns why it failed, or nothing.
  std::string Wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return At(number) != Progress::kRunning; });
    return At(number) == Progress::kFailed ? over_ : "";
  }

  // Ends the thread and fails what it has not finished; the first reason stays.
  void Abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (abort_reason_.empty()) abort_reason_ = reason.empty() ? "aborted" : reason;
    if (mesh_ != nullptr) mesh_->Interrupt();
    work_.notify_one();
  }

  // The thread: works off the queue until the group is over, then closes the connections.
  void Run() {
    MeshCollectives collectives(*mesh_);
    std::unique_lock lock(mutex_);
    while (RunNext(lock, collectives)) {
    }
    const std::string mesh_failure = mesh_->failure();
    const std::unique_ptr<GlooMesh> mesh = std::move(mesh_);  // Abort finds none from now on
    lock.unlock();
    mesh->ReleaseMemory();
    lock.lock();
    over_ = abort_reason_.empty() ? mesh_failure : abort_reason_;
    operations_.clear();
    done_.notify_all();
    lock.unlock();  // before the connections are closed, which takes a while
  }

 private:
  // Waits for an operation and performs it. False: the group is over.
  bool RunNext(std::unique_lock<std::mutex>& lock, MeshCollectives& collectives) {
    work_.wait(lock, [&] { return !abort_reason_.empty() || !operations_.empty(); });
    if (!abort_reason_.empty()) return false;
    const Operation operation = operations_.front();
    lock.unlock();
    const bool performed = operation.root == kNoRoot
                               ? collectives.AllReduceSum(operation.buffer)
                               : collectives.Broadcast(operation.buffer, operation.root);
    lock.lock();
    if (!performed) return false;
    operations_.pop_front();
    ++finished_;
    done_.notify_all();
    return true;
  }

  Progress At(std::uint64_t number) const {
    if (number < finished_) return Progress::kDone;
    return over_.empty() ? Progress::kRunning : Progress::kFailed;
  }

  // Guarded by mutex_, but for the mesh itself, which is the thread's; Abort only interrupts it.
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::unique_ptr<GlooMesh> mesh_;  // null once the thread is about to end
  std::deque<Operation>
      operations_;  // numbers finished_, finished_ + 1, ...; the first is under way
  std::uint64_t started_ = 0;
  std::uint64_t finished_ = 0;
  std::string abort_reason_;  // empty: nobody aborted
  std::string over_;          // why the group is over and all memory is free again; empty before
};

class GlooCollective : public Collective {
 public:
  GlooCollective(std::shared_ptr<OperationQueue> queue, std::uint64_t number,
                 std::function<Instant()> now)
      : queue_(std::move(queue)), number_(number), now_(std::move(now)) {}
  ~GlooCollective() override { queue_->Wait(number_); }

  Progress Poll() override { return queue_->Poll(number_); }

  Completion Wait() override {
    std::string failure = queue_->Wait(number_);
    const Progress progress = failure.empty() ? Progress::kDone : Progress::kFailed;
    return {.progress = progress, .at = now_(), .reason = std::move(failure)};
  }

 private:
  const std::shared_ptr<OperationQueue> queue_;  // shared with the transport and its thread
  const std::uint64_t number_;
  const std::function<Instant()> now_;
};

class GlooTransport : public Transport {
 public:
  GlooTransport(const GlooMeeting& meeting, std::unique_ptr<GlooMesh> mesh)
      : rank_(meeting.rank),
        size_(meeting.size),
        now_(meeting.now),
        queue_(std::make_shared<OperationQueue>(std::move(mesh))),
        thread_([queue = queue_] { queue->Run(); }) {}

  ~GlooTransport() override {
    queue_->Abort("this member has left the group");
    thread_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Collective> StartAllReduceSum(std::span<float> buffer) override {
    return Start({.buffer = buffer});
  }

  std::unique_ptr<Collective> StartBroadcast(std::span<float> buffer, int root) override {
    TACTUS_CHECK(root >= 0 && root < size_);
    return Start({.buffer = buffer, .root = root});
  }

  void Abort(const std::string& reason) override { queue_->Abort(reason); }

 private:
  std::unique_ptr<Collective> Start(const Operation& operation) {
    return std::make_unique<GlooCollective>(queue_, queue_->Start(operation), now_);
  }

  // Constant after construction.
  const int rank_;
  const int size_;
  const std::function<Instant()> now_;
  const std::shared_ptr<OperationQueue> queue_;  // shared with the thread and the handles
  std::thread thread_;
};

}  // namespace

ConnectedTransport ConnectGloo(const GlooMeeting& meeting) {
  TACTUS_CHECK(meeting.size >= 1 && meeting.rank >= 0 && meeting.rank < meeting.size);
  TACTUS_CHECK(meeting.exchange && meeting.now);
  if (meeting.size == 1) {
    const bool given_up = meeting.exchange("alone").size() != 1;
    if (given_up) return {.reason = "the group was given up before it was connected"};
    return {.transport = std::move(MakeInProcessGroup(1, meeting.now).front())};
  }
  const BlockedSigpipe blocked;  // inherited by Gloo's thread and by the transport's
  ConnectedTransport connected;
  std::unique_ptr<GlooMesh> mesh = GlooMesh::Connect(meeting, connected.reason);
  if (mesh == nullptr) return connected;
  connected.transport = std::make_unique<GlooTransport>(meeting, std::move(mesh));
  return connected;
}

}  // namespace tactus::collective
