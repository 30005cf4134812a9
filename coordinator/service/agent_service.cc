#include "coordinator/service/agent_service.h"

#include <memory>
#include <string>
#include <utility>

#include "coordinator/service/calls.h"
#include "coordinator/service/upload_call.h"

namespace tactus::service {
namespace {

// One stream of an agent. All but gRPC's reactions runs on the control thread. It reads the next
// message only when the one before is dealt with, so an agent is never ahead of the coordinator by
// more than one.
class SessionCall final
    : public OwnedCall<SessionCall,
                       grpc::ServerBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent>>,
      public AgentStream {
 public:
  SessionCall(const FileSurroundings& surroundings, std::string peer)
      : OwnedCall(surroundings.metrics, "AgentSession/Session"),
        core_(surroundings.core),
        peer_(std::move(peer)) {}

  void Start() {
    Hold();
    StartRead(&read_);
  }

  void Send(const agent::v1::ToAgent& message) override {
    written_ = message;
    StartWrite(&written_);
  }

  void Close(const absl::Status& status) override {
    if (!std::exchange(finished_, true)) FinishWith(status);
  }

  std::string peer() const override { return peer_; }

  void OnReadDone(bool ok) override {
    core_.control().Post([self = shared_from_this(), ok] { self->Received(ok); });
  }

  void OnWriteDone(bool ok) override {
    core_.control().Post([self = shared_from_this(), ok] {
      if (ok) self->core_.sessions().Sent(self.get());
    });
  }

  void OnCancel() override {
    core_.control().Post([self = shared_from_this()] { self->Received(false); });
  }

 private:
  void Received(bool ok) {
    if (finished_) return;
    if (!ok) {
      core_.sessions().Closed(this);
      return Close(absl::OkStatus());
    }
    if (opened_) {
      return core_.sessions().Receive(this, read_, [self = shared_from_this()] { self->ReadOn(); });
    }
    opened_ = true;
    const absl::Status status = core_.sessions().Open(shared_from_this(), read_);
    if (!status.ok()) return Close(status);
    ReadOn();
  }

  void ReadOn() {
    if (!finished_) StartRead(&read_);
  }

  CoreRunner& core_;
  const std::string peer_;
  agent::v1::FromAgent read_;   // gRPC writes it while a read is under way
  agent::v1::ToAgent written_;  // gRPC reads it while a write is under way
  // Control thread:
  bool opened_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent>* AgentService::Session(
    grpc::CallbackServerContext* context) {
  const auto call = std::make_shared<SessionCall>(around_, context->peer());
  call->Start();
  return call.get();
}

grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* AgentService::UploadArtifact(
    grpc::CallbackServerContext*, agent::v1::UploadArtifactResponse*) {
  return StartUpload(around_);
}

}  // namespace tactus::service
