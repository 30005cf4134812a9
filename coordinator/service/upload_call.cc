#include "coordinator/service/upload_call.h"

#include <memory>
#include <string>

#include "coordinator/shell/job_conversion.h"
#include "protocol/worker_messages.h"

namespace tactus::service {
namespace {

class UploadCall final : public ReceivingCall<agent::v1::UploadArtifactRequest> {
 public:
  UploadCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context)
      : ReceivingCall(
            surroundings, context,
            {.transfer = Transfer::kAgentUpload, .method = "AgentSession/UploadArtifact"}) {}

 private:
  void Opened(const agent::v1::UploadArtifactRequest& first) override {
    const absl::StatusOr<std::string> id = ParseJobName("job_id", first.job_id());
    absl::Status status = id.status();
    if (status.ok()) status = CheckArtifactPath("path", first.path());
    if (!status.ok()) return End(status);
    visit().About(JobName(*id) + "/" + first.path());
    file_ = {.id = *id,
             .artifact = {.path = first.path(), .size_bytes = first.size_bytes()},
             .worker = WorkerId{first.worker_id()}};
    // Whose file it is depends on the job's group, which the core knows: asked when it comes, and
    // again when it is whole.
    if (visit().who().kind != access::Principal::Kind::kLocal) {
      file_.allow = [visit = visit()](const std::string& job, const std::string& maker_node) {
        return visit.Allow(access::FileOfJob{.job = JobName(job), .maker_node = maker_node});
      };
    }
    // An agent that says no hash has to begin with the first byte.
    const BlobStore::Upload upload = {
        .sha256 = first.sha256(), .size_bytes = first.size_bytes(), .offset = first.offset()};
    around_.core.AdmitArtifact(file_, [self = Self(), upload](const absl::Status& wanted) {
      self->around_.files.Post(
          [self, upload, wanted] { wanted.ok() ? self->Accept(upload) : self->End(wanted); });
    });
  }

  void Kept(const std::string& sha256) override {
    file_.artifact.sha256 = sha256;
    around_.core.ReportArtifact(file_,
                                [self = Self()](const absl::Status& status) { self->End(status); });
  }

  // Of a checkpoint, as older ones go once it is on record.
  bool ReadsBack() const override {
    return file_.artifact.path == protocol::kCheckpointFile ||
           file_.artifact.path.starts_with(protocol::kCheckpointFolder);
  }

  std::shared_ptr<UploadCall> Self() {
    return std::static_pointer_cast<UploadCall>(shared_from_this());
  }

  // Files' thread:
  CoreRunner::Brought file_;
};

}  // namespace

grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* StartUpload(
    const FileSurroundings& surroundings, grpc::CallbackServerContext* context) {
  const auto call = MakeFileCall<UploadCall>(surroundings, context);
  call->Begin();
  return call.get();
}

}  // namespace tactus::service
