#include "coordinator/service/upload_call.h"

#include <algorithm>
#include <memory>
#include <string>

#include "coordinator/shell/job_conversion.h"
#include "protocol/worker_messages.h"

namespace tactus::service {
namespace {

// A group that has taken another's place has no use for files of that, however long they are.
absl::Status CheckWorker(const job::JobRecord& record, WorkerId worker) {
  const bool said = worker != WorkerId{};
  const bool present = std::ranges::any_of(
      record.members, [worker](const auto& member) { return member.worker == worker; });
  if (!said || present) return absl::OkStatus();
  return absl::FailedPreconditionError("worker_id: " + std::to_string(worker.value) +
                                       " is not of the job's present group");
}

class UploadCall final : public ReceivingCall<agent::v1::UploadArtifactRequest> {
 public:
  explicit UploadCall(const FileSurroundings& surroundings)
      : ReceivingCall(surroundings, Transfer::kAgentUpload, "AgentSession/UploadArtifact") {}

 private:
  void Opened(const agent::v1::UploadArtifactRequest& first) override {
    const absl::StatusOr<std::string> id = ParseJobName("job_id", first.job_id());
    absl::Status status = id.status();
    if (status.ok()) status = CheckArtifactPath("path", first.path());
    if (!status.ok()) return End(status);
    id_ = *id;
    worker_ = WorkerId{first.worker_id()};
    artifact_ = {.path = first.path(), .size_bytes = first.size_bytes()};
    // An agent that says no hash has to begin with the first byte.
    const BlobStore::Upload upload = {
        .sha256 = first.sha256(), .size_bytes = first.size_bytes(), .offset = first.offset()};
    around_.core.FindUnfinished(id_, [self = Self(), upload, worker = worker_](
                                         const absl::StatusOr<job::JobRecord>& record) {
      const absl::Status wanted = record.ok() ? CheckWorker(*record, worker) : record.status();
      self->around_.files.Post([self, upload, status = wanted] {
        status.ok() ? self->Accept(upload) : self->End(status);
      });
    });
  }

  void Kept(const std::string& sha256) override {
    artifact_.sha256 = sha256;
    around_.core.ReportArtifact(id_, artifact_, worker_,
                                [self = Self()](const absl::StatusOr<job::JobRecord>& record) {
                                  self->End(record.status());
                                });
  }

  // Of a checkpoint, as older ones go once it is on record.
  bool ReadsBack() const override {
    return artifact_.path == protocol::kCheckpointFile ||
           artifact_.path.starts_with(protocol::kCheckpointFolder);
  }

  std::shared_ptr<UploadCall> Self() {
    return std::static_pointer_cast<UploadCall>(shared_from_this());
  }

  // Files' thread:
  std::string id_;
  WorkerId worker_;
  job::ArtifactRecord artifact_;
};

}  // namespace

grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* StartUpload(
    const FileSurroundings& surroundings) {
  const auto call = MakeFileCall<UploadCall>(surroundings);
  call->Begin();
  return call.get();
}

}  // namespace tactus::service
