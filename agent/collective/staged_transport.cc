#include "agent/collective/staged_transport.h"

#include <thread>
#include <utility>

#include "agent/collective/device_transport.h"
#include "agent/collective/staged_queue.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

class StagedCollective : public Collective {
 public:
  StagedCollective(std::shared_ptr<StagedQueue> queue, const Operation& operation)
      : queue_(std::move(queue)) {
    queue_->Start(operation, ticket_);
  }
  ~StagedCollective() override { queue_->Wait(ticket_); }

  Progress Poll() override { return queue_->Poll(ticket_); }
  Completion Wait() override { return queue_->Wait(ticket_); }

 private:
  const std::shared_ptr<StagedQueue> queue_;  // shared with the transport and its thread
  StagedTicket ticket_;                       // written by the queue
};

class StagedTransport : public DeviceTransport {
 public:
  explicit StagedTransport(std::shared_ptr<StagedQueue> queue)
      : rank_(queue->host().rank()),
        size_(queue->host().size()),
        queue_(std::move(queue)),
        thread_([own = queue_] { own->Run(); }) {}

  ~StagedTransport() override {
    queue_->Abort("this member has left the group");
    thread_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Collective> Start(const Operation& operation) override {
    return std::make_unique<StagedCollective>(queue_, operation);
  }

  double TakeLinkRate() override { return queue_->host().TakeLinkRate(); }
  Awaiting awaiting() override { return queue_->awaiting(); }
  std::vector<int> failed() override { return queue_->failed(); }
  void Abort(const std::string& reason) override { queue_->Abort(reason); }

 private:
  // Constant after construction.
  const int rank_;
  const int size_;
  const std::shared_ptr<StagedQueue> queue_;  // shared with the thread and the handles
  std::thread thread_;
};

}  // namespace

ConnectedTransport MakeStagedTransport(StagedMember member) {
  TACTUS_CHECK(member.host != nullptr && member.now);
  std::string reason = cuda::UseDevice(member.device);
  Staging staging;
  if (reason.empty()) reason = staging.Open();
  if (!reason.empty()) {
    return {.reason = "device " + std::to_string(member.device) + ": " + reason, .own = true};
  }
  auto queue = std::make_shared<StagedQueue>(std::move(member), std::move(staging));
  return {.transport = std::make_unique<StagedTransport>(std::move(queue))};
}

}  // namespace tactus::collective
