#include "coordinator/service/upload_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/service/artifacts.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/job_conversion.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// All but gRPC's reactions runs on the files' thread.
class UploadCall final : public grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>,
                         public std::enable_shared_from_this<UploadCall> {
 public:
  explicit UploadCall(const FileSurroundings& surroundings) : around_(surroundings) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&read_);
  }

  void OnReadDone(bool ok) override {
    around_.files.Post([self = shared_from_this(), ok] { self->Received(ok); });
  }

  // gRPC's share ends; posted tasks hold theirs. A read that is cancelled comes back as not ok.
  void OnDone() override { const std::shared_ptr<UploadCall> last = std::move(self_); }

 private:
  void Received(bool ok) {
    if (!ok)
      return writer_.has_value() ? Complete() : End(absl::InvalidArgumentError("upload: is empty"));
    if (writer_.has_value()) return Append();
    // The first message names the file.
    const absl::StatusOr<std::string> id = ParseJobName("job_id", read_.job_id());
    absl::Status status = id.status();
    if (status.ok()) status = CheckArtifactPath("path", read_.path());
    if (!status.ok()) return End(status);
    id_ = *id;
    artifact_ = {.path = read_.path(), .size_bytes = read_.size_bytes()};
    around_.core.FindUnfinished(
        id_, [self = shared_from_this()](const absl::StatusOr<job::JobRecord>& record) {
          self->around_.files.Post([self, status = record.status()] { self->Open(status); });
        });
  }

  void Open(const absl::Status& found) {
    if (!found.ok()) return End(found);
    auto writer = ArtifactWriter::Create(ResultFolder(around_.state_folder, id_), artifact_.path);
    if (!writer.ok()) return End(writer.status());
    writer_.emplace(*std::move(writer));
    Append();
  }

  void Append() {
    if (writer_->size_bytes() + read_.data().size() > artifact_.size_bytes) {
      return End(WrongSize("more"));
    }
    const absl::Status status = writer_->Write(read_.data());
    if (!status.ok()) return End(status);
    StartRead(&read_);
  }

  void Complete() {
    if (writer_->size_bytes() != artifact_.size_bytes) return End(WrongSize("less"));
    const absl::Status status = writer_->Commit();
    if (!status.ok()) return End(status);
    around_.core.ReportArtifact(
        id_, artifact_, [self = shared_from_this()](const absl::StatusOr<job::JobRecord>& record) {
          self->End(record.status());
        });
  }

  absl::Status WrongSize(const std::string& how) const {
    return runtime::InvalidFields({{.field = "size_bytes",
                                    .description = "said " + std::to_string(artifact_.size_bytes) +
                                                   ", and " + how + " than that came"}});
  }

  void End(const absl::Status& status) {
    CountCall(around_.metrics, "AgentSession/UploadArtifact", status);
    Finish(runtime::ToGrpc(status));
  }

  const FileSurroundings around_;
  std::shared_ptr<UploadCall> self_;       // gRPC's share, until OnDone
  agent::v1::UploadArtifactRequest read_;  // gRPC writes it while a read is under way
  // Files' thread:
  std::string id_;
  job::ArtifactRecord artifact_;
  std::optional<ArtifactWriter> writer_;
};

}  // namespace

grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* StartUpload(
    const FileSurroundings& surroundings) {
  const auto call = std::make_shared<UploadCall>(surroundings);
  call->Start();
  return call.get();
}

}  // namespace tactus::service
