#include "coordinator/service/watch_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/service/calls.h"
#include "coordinator/shell/job_conversion.h"
#include "coordinator/shell/watch_queue.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// All but gRPC's reactions runs on the control thread.
class WatchCall final : public OwnedCall<WatchCall, grpc::ServerWriteReactor<v1::JobEvent>>,
                        public JobWatcher {
 public:
  WatchCall(CoreRunner& core, grpc::CallbackServerContext* context, const Door& door)
      : OwnedCall(context, door, "Jobs/WatchJob"), core_(core) {}

  void Start(const v1::WatchJobRequest& request) {
    const std::shared_ptr<WatchCall> self = Hold();
    const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
    const absl::Status& admitted = visit().admitted();
    if (admitted.ok() && id.ok()) return core_.Watch(*id, request.resume_token(), self);
    const absl::Status status = admitted.ok() ? id.status() : admitted;
    core_.control().Post([self, status] { self->OnEnd(status); });
  }

  const std::string& peer() const override { return visit().peer(); }

  // What waits is dropped with the watch: it is for somebody who does not read, and has a place in
  // memory.
  void OnEvent(const SharedEvent& event) override {
    if (end_.has_value()) return;
    const absl::Status still = visit().Still();
    if (still.ok() && queue_.Push(event)) return Pump();
    core_.Unwatch(shared_from_this());
    queue_ = {};
    if (!still.ok()) return OnEnd(still);
    OnEnd(runtime::WithReason(
        absl::ResourceExhaustedError(
            "watch: this watcher reads too slowly: " + std::to_string(WatchQueue::kJobsMax) +
            " changes or " + std::to_string(WatchQueue::kBytesMax) + " bytes wait; watch again"),
        {.reason = "WATCHER_TOO_SLOW"}));
  }

  void OnEnd(const absl::Status& status) override {
    if (!end_.has_value()) end_ = status;
    Pump();
  }

  void OnWriteDone(bool ok) override {
    core_.control().Post([self = shared_from_this(), ok] { self->Written(ok); });
  }

  void OnCancel() override {
    core_.control().Post([self = shared_from_this()] { self->Leave(); });
  }

 private:
  void Written(bool ok) {
    writing_ = false;
    if (!ok) return Leave();
    Pump();
  }

  // The caller is gone: what waits is for nobody.
  void Leave() {
    core_.Unwatch(shared_from_this());
    queue_ = {};
    OnEnd(absl::CancelledError("watch: the caller left"));
  }

  void Pump() {
    if (writing_ || finished_) return;
    written_ = queue_.Pop();
    if (written_ != nullptr) {
      writing_ = true;
      return StartWrite(written_.get());
    }
    if (!end_.has_value()) return;
    finished_ = true;
    FinishWith(*end_);
  }

  CoreRunner& core_;

  // Control thread:
  WatchQueue queue_;
  std::optional<absl::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
  SharedEvent written_;  // gRPC reads it while writing_
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(CoreRunner& core,
                                                   grpc::CallbackServerContext* context,
                                                   const Door& door,
                                                   const v1::WatchJobRequest& request) {
  const auto call = std::make_shared<WatchCall>(core, context, door);
  call->Start(request);
  return call.get();
}

}  // namespace tactus::service
