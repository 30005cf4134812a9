#include "coordinator/service/get_job_call.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/job/job_deadlines.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/service/calls.h"
#include "coordinator/shell/agent_sessions.h"
#include "coordinator/shell/job_conversion.h"

namespace tactus::service {
namespace {

constexpr Duration kPatienceMax = std::chrono::seconds(30);
// Kept back of a call's time for the answer's way: a tenth of it, within these.
constexpr Duration kMarginMin = std::chrono::milliseconds(10);
constexpr Duration kMarginMax = std::chrono::milliseconds(500);

Duration PatienceOf(std::chrono::system_clock::time_point deadline) {
  const Duration left = deadline - std::chrono::system_clock::now();
  const Duration margin = std::clamp(left / 10, kMarginMin, kMarginMax);
  return std::clamp(left - margin, Duration::zero(), kPatienceMax);
}

void AddDeadlines(const job::JobRecord& record, v1::Job& job) {
  const job::LadderFacts facts{
      .round_seconds = record.progress.long_round_seconds,
      .edge = job::EdgeTime(record),
      .unheard = AgentSessions::kMissedMax * AgentSessions::kBeat,
      .hold = record.settings.hold,
  };
  for (const job::Rung& rung : job::LadderOf(job::JobDeadlines{}, facts)) {
    *job.add_deadlines() = ToProto(rung);
  }
}

void AddSnapshots(const job::JobRecord& record, v1::Job& job) {
  for (const job::ArtifactRecord& snapshot : SnapshotsOf(record)) {
    *job.add_snapshots() = ToProto(snapshot);
  }
}

class GetJobCall final : public OwnedCall<GetJobCall, grpc::ServerUnaryReactor> {
 public:
  GetJobCall(CoreRunner& core, grpc::CallbackServerContext* context, const Door& door,
             v1::Job* response)
      : OwnedCall(context, door, "Jobs/GetJob"), core_(core), response_(response) {}

  void Start(const v1::GetJobRequest& request, std::chrono::system_clock::time_point deadline) {
    const std::shared_ptr<GetJobCall> self = Hold();
    if (!visit().admitted().ok()) return End(visit().admitted());
    if (deadline == std::chrono::system_clock::time_point::max()) return End(NoDeadline());
    const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
    if (!id.ok()) return End(id.status());
    const auto answer = [self](const absl::StatusOr<job::JobRecord>& record) {
      self->Answer(record);
    };
    if (request.wait_for_change_after().empty()) return core_.FindJob(*id, answer);
    core_.AwaitChange({.call = this,
                       .id = *id,
                       .etag = request.wait_for_change_after(),
                       .patience = PatienceOf(deadline)},
                      answer);
  }

  void OnCancel() override {
    core_.LeaveWait(this);
    End(absl::CancelledError("get: the caller left"));
  }

 private:
  void Answer(const absl::StatusOr<job::JobRecord>& record) {
    if (ended_.exchange(true)) return;
    if (record.ok()) *response_ = ToProto(*record);
    if (record.ok()) AddSnapshots(*record, *response_);
    if (record.ok() && !job::IsFinal(record->state)) AddDeadlines(*record, *response_);
    FinishWith(record.status());
  }

  void End(const absl::Status& status) {
    if (!ended_.exchange(true)) FinishWith(status);
  }

  CoreRunner& core_;
  v1::Job* const response_;  // gRPC's, until Finish
  // Answer and cancellation come on different threads; the first one finishes the call.
  std::atomic<bool> ended_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* StartGetJob(grpc::CallbackServerContext* context, CoreRunner& core,
                                      const Door& door, const v1::GetJobRequest& request,
                                      v1::Job* response) {
  const auto call = std::make_shared<GetJobCall>(core, context, door, response);
  call->Start(request, context->deadline());
  return call.get();
}

}  // namespace tactus::service
