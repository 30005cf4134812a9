#include "coordinator/service/download_call.h"

#include <memory>
#include <optional>
#include <utility>

#include "coordinator/service/artifacts.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/job_conversion.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kChunkBytesMax = 1u << 20;

// All but gRPC's reactions runs on the files' thread.
class DownloadCall final : public grpc::ServerWriteReactor<v1::ArtifactChunk>,
                           public std::enable_shared_from_this<DownloadCall> {
 public:
  explicit DownloadCall(const FileSurroundings& surroundings) : around_(surroundings) {}

  void Start(const v1::DownloadArtifactRequest& request) {
    self_ = shared_from_this();
    const absl::StatusOr<std::string> id = ParseJobName("name", request.name());
    absl::Status status = id.status();
    if (status.ok()) status = CheckArtifactPath("path", request.path());
    if (!status.ok()) return End(status);
    around_.core.FindJob(
        *id, [self = self_, path = request.path()](const absl::StatusOr<job::JobRecord>& record) {
          if (!record.ok()) return self->End(record.status());
          self->around_.files.Post([self, path, id = record->name] { self->Open(id, path); });
        });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("download: the caller left"));
    around_.files.Post([self = shared_from_this()] { self->SendNext(); });
  }

  // gRPC's share ends; posted tasks hold theirs. A write that is cancelled comes back as not ok.
  void OnDone() override { const std::shared_ptr<DownloadCall> last = std::move(self_); }

 private:
  void Open(const std::string& id, const std::string& path) {
    auto reader = ArtifactReader::Open(ResultFolder(around_.state_folder, id), path);
    if (absl::IsNotFound(reader.status())) {
      return End(absl::NotFoundError(JobName(id) + ": its result has no file " + path));
    }
    if (!reader.ok()) return End(reader.status());
    reader_.emplace(*std::move(reader));
    SendNext();
  }

  void SendNext() {
    absl::StatusOr<std::string> bytes = reader_->Read(kChunkBytesMax);
    if (!bytes.ok() || bytes->empty()) return End(bytes.status());
    chunk_.set_data(*std::move(bytes));
    StartWrite(&chunk_);
  }

  void End(const absl::Status& status) {
    CountCall(around_.metrics, "Jobs/DownloadArtifact", status);
    Finish(runtime::ToGrpc(status));
  }

  const FileSurroundings around_;
  std::shared_ptr<DownloadCall> self_;  // gRPC's share, until OnDone
  // Files' thread:
  std::optional<ArtifactReader> reader_;
  v1::ArtifactChunk chunk_;  // gRPC reads it while a write is under way
};

}  // namespace

grpc::ServerWriteReactor<v1::ArtifactChunk>* StartDownload(
    const FileSurroundings& surroundings, const v1::DownloadArtifactRequest& request) {
  const auto call = std::make_shared<DownloadCall>(surroundings);
  call->Start(request);
  return call.get();
}

}  // namespace tactus::service
