#include "coordinator/service/download_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "coordinator/files/job_folder.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/shell/job_conversion.h"

namespace tactus::service {
namespace {

constexpr char kCheckpointPath[] = "checkpoint.safetensors";

// The hash of a job's file; empty: the record does not say.
std::string HashOf(const job::JobRecord& record, const std::string& path) {
  if (record.result.has_value()) {
    const auto found =
        std::ranges::find(record.result->artifacts, path, &job::ArtifactRecord::path);
    if (found != record.result->artifacts.end()) return found->sha256;
  }
  const std::vector<job::ArtifactRecord> snapshots = SnapshotsOf(record);
  const auto snapshot = std::ranges::find(snapshots, path, &job::ArtifactRecord::path);
  if (snapshot != snapshots.end()) return snapshot->sha256;
  if (path == kCheckpointPath && record.checkpoint.has_value()) return record.checkpoint->sha256;
  return "";
}

class DownloadCall final : public SendingCall<v1::ArtifactChunk> {
 public:
  DownloadCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context)
      : SendingCall(surroundings, context, "Jobs/DownloadArtifact") {}

  void Start(const v1::DownloadArtifactRequest& request) {
    Hold();
    if (!visit().admitted().ok()) return End(visit().admitted());
    const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
    absl::Status status = id.status();
    if (status.ok()) status = CheckArtifactPath("path", request.path());
    if (!status.ok()) return End(status);
    path_ = request.path();
    offset_ = request.offset();
    const auto self = std::static_pointer_cast<DownloadCall>(shared_from_this());
    // Made here, where a job's own file of the name would be somebody else's word.
    if (ProvenanceRecords::IsOne(path_)) {
      return around_.provenance.Make(*id, [self, id = *id](const absl::Status& made) {
        if (!made.ok()) return self->End(made);
        self->SendFrom(JobFolder(self->around_.state_folder, id), id);
      });
    }
    around_.core.FindJob(*id, [self](const absl::StatusOr<job::JobRecord>& record) {
      if (!record.ok()) return self->End(record.status());
      self->around_.files.Post([self, id = record->name, sha256 = HashOf(*record, self->path_)] {
        self->Open(id, sha256);
      });
    });
  }

 private:
  void Open(const std::string& id, const std::string& sha256) {
    if (!sha256.empty()) return Send(around_.blobs.Read(sha256, offset_));
    SendFrom(ResultFolder(around_.state_folder, id), id);
  }

  void SendFrom(const std::string& folder, const std::string& id) {
    auto reader = ArtifactReader::Open(folder, path_);
    if (absl::IsNotFound(reader.status())) {
      return End(absl::NotFoundError(JobName(id) + ": its result has no file " + path_));
    }
    const absl::Status moved = reader.ok() ? reader->Skip(offset_) : reader.status();
    moved.ok() ? Send(std::make_unique<FileReader>(*std::move(reader))) : End(moved);
  }

  std::string path_;
  std::uint64_t offset_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::ArtifactChunk>* StartDownload(
    const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
    const v1::DownloadArtifactRequest& request) {
  const auto call = MakeFileCall<DownloadCall>(surroundings, context);
  call->Start(request);
  return call.get();
}

}  // namespace tactus::service
