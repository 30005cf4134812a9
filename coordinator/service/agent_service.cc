#include "coordinator/service/agent_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/access/bounds.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/upload_call.h"
#include "runtime/control_thread.h"
#include "runtime/options.h"
#include "runtime/status.h"

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
  SessionCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context)
      : OwnedCall(context, surroundings.door, "AgentSession/Session"), core_(surroundings.core) {}

  void Start() {
    const std::shared_ptr<SessionCall> self = Hold();
    core_.control().Post([self] { self->Begin(); });
  }

  void Send(const agent::v1::ToAgent& message) override {
    written_ = message;
    StartWrite(&written_);
  }

  void Close(const absl::Status& status) override {
    if (std::exchange(finished_, true)) return;
    patience_.reset();
    FinishWith(status);
  }

  std::string peer() const override { return visit().peer(); }
  std::string host() const override {
    const bool asked = visit().who().kind != access::Principal::Kind::kLocal;
    return asked ? "" : access::HostOfPeer(visit().peer());
  }

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
  void Begin() {
    if (!visit().admitted().ok()) return Close(visit().admitted());
    const Duration limit = visit().bounds().first_message;
    patience_.emplace(core_.control());
    patience_->After(limit, [this, limit] {
      Close(access::Beyond(access::Bound::kFirstMessage,
                           "hello: did not come within " + runtime::FormatDuration(limit)));
    });
    StartRead(&read_);
  }

  void Received(bool ok) {
    if (finished_) return;
    if (!ok) {
      core_.sessions().Closed(this);
      return Close(absl::OkStatus());
    }
    // An agent says something every few seconds, or is given up.
    const absl::Status still = visit().Still();
    if (!still.ok()) return IsExpired(still) ? Leave(still) : Expel(still);
    if (opened_) {
      return core_.sessions().Receive(this, read_, [self = shared_from_this()] { self->ReadOn(); });
    }
    opened_ = true;
    patience_.reset();
    const std::string& node = read_.hello().node();
    visit().About("nodes/" + node);
    absl::Status status =
        read_.has_hello() ? visit().Allow(access::SpeakingAs{node}) : absl::OkStatus();
    if (status.ok()) status = visit().Promise();
    if (status.ok()) status = core_.sessions().Open(shared_from_this(), read_);
    if (!status.ok()) return Close(status);
    visit().WriteDown(status);
    visit().StopCounting();
    ReadOn();
  }

  static bool IsExpired(const absl::Status& status) {
    return runtime::ReasonOf(status).reason == "CERTIFICATE_EXPIRED";
  }

  // As one that is away: it may come back with another certificate, and its workers train on.
  void Leave(const absl::Status& why) {
    core_.sessions().Closed(this);
    Close(why);
  }

  // Not let in any more: its node is lost at once, so that jobs go on without its workers. The
  // agent is told to end them; whether it does or not, their groups are formed anew without them.
  void Expel(const absl::Status& why) {
    if (!opened_) return Close(why);
    core_.sessions().Expel(this, std::string(why.message()));
    Close(runtime::WithReason(why, {.reason = "EXPELLED"}));
  }

  void ReadOn() {
    if (!finished_) StartRead(&read_);
  }

  CoreRunner& core_;
  agent::v1::FromAgent read_;   // gRPC writes it while a read is under way
  agent::v1::ToAgent written_;  // gRPC reads it while a write is under way
  // Control thread:
  std::optional<runtime::Timer> patience_;  // until the first message
  bool opened_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerBidiReactor<agent::v1::FromAgent, agent::v1::ToAgent>* AgentService::Session(
    grpc::CallbackServerContext* context) {
  const auto call = std::make_shared<SessionCall>(around_, context);
  call->Start();
  return call.get();
}

grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* AgentService::UploadArtifact(
    grpc::CallbackServerContext* context, agent::v1::UploadArtifactResponse*) {
  return StartUpload(around_, context);
}

}  // namespace tactus::service
