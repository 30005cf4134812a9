#include "coordinator/service/watch_call.h"

#include <memory>
#include <optional>
#include <utility>

#include "coordinator/service/calls.h"
#include "coordinator/service/watch_queue.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// All but gRPC's reactions runs on the control thread.
class WatchCall final : public grpc::ServerWriteReactor<v1::JobEvent>,
                        public JobWatcher,
                        public std::enable_shared_from_this<WatchCall> {
 public:
  WatchCall(CoreRunner& core, runtime::CoordinatorMetrics& metrics)
      : core_(core), metrics_(metrics) {}

  void Start(const absl::StatusOr<std::string>& id) {
    self_ = shared_from_this();
    if (id.ok()) return core_.Watch(*id, self_);
    core_.control().Post([self = self_, status = id.status()] { self->OnEnd(status); });
  }

  void OnEvent(const v1::JobEvent& event) override {
    if (end_.has_value()) return;
    if (!queue_.Push(event)) {
      core_.Unwatch(shared_from_this());
      return OnEnd(absl::ResourceExhaustedError("watch: this watcher is behind by " +
                                                std::to_string(WatchQueue::kJobsMax) +
                                                " changes of the job; watch again"));
    }
    Pump();
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

  // gRPC's share ends; posted tasks hold theirs.
  void OnDone() override { const std::shared_ptr<WatchCall> last = std::move(self_); }

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
    std::optional<v1::JobEvent> event = queue_.Pop();
    if (event.has_value()) {
      writing_ = true;
      written_ = *std::move(event);
      return StartWrite(&written_);
    }
    if (!end_.has_value()) return;
    finished_ = true;
    CountCall(metrics_, "Jobs/WatchJob", *end_);
    Finish(runtime::ToGrpc(*end_));
  }

  CoreRunner& core_;
  runtime::CoordinatorMetrics& metrics_;
  std::shared_ptr<WatchCall> self_;  // gRPC's share, until OnDone

  // Control thread:
  WatchQueue queue_;
  std::optional<absl::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
  v1::JobEvent written_;  // gRPC reads it while writing_
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(CoreRunner& core,
                                                   runtime::CoordinatorMetrics& metrics,
                                                   const absl::StatusOr<std::string>& id) {
  const auto call = std::make_shared<WatchCall>(core, metrics);
  call->Start(id);
  return call.get();
}

}  // namespace tactus::service
