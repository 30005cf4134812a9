#include "coordinator/service/upload_call.h"

#include <memory>
#include <string>

#include "coordinator/shell/job_conversion.h"
#include "protocol/worker_messages.h"

namespace tactus::service {
namespace {

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
    around_.core.FindUnfinished(
        id_, [self = Self(), upload](const absl::StatusOr<job::JobRecord>& record) {
          self->around_.files.Post([self, upload, status = record.status()] {
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
