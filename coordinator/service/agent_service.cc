#include "coordinator/service/agent_service.h"

#include <memory>
#include <string>
#include <utility>

#include "coordinator/service/calls.h"
#include "coordinator/service/upload_call.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// One stream of an agent. All but gRPC's reactions runs on the control thread. It reads the next
// message only when the one before is dealt with, so an agent is never ahead of the coordinator by
// more than one.
class SessionCall final : public grpc::ServerBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent>,
                          public AgentStream,
                          public std::enable_shared_from_this<SessionCall> {
 public:
  SessionCall(const FileSurroundings& surroundings, std::string peer)
      : core_(surroundings.core), metrics_(surroundings.metrics), peer_(std::move(peer)) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&read_);
  }

  void Send(const agent::v1::ToAgent& message) override {
    written_ = message;
    StartWrite(&written_);
  }

  void Close(const absl::Status& status) override {
    if (std::exchange(finished_, true)) return;
    CountCall(metrics_, "AgentSession/Session", status);
    Finish(runtime::ToGrpc(status));
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

  // gRPC's share ends; the session and posted tasks hold theirs.
  void OnDone() override { const std::shared_ptr<SessionCall> last = std::move(self_); }

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
  metrics::CoordinatorMetrics& metrics_;
  const std::string peer_;
  std::shared_ptr<SessionCall> self_;  // gRPC's share, until OnDone

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
