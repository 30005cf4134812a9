#include "coordinator/service/backup_call.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "coordinator/service/artifacts.h"
#include "coordinator/service/calls.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kChunkBytesMax = 1u << 20;
// In the state folder. It is there for as long as it takes to write it: the name is taken away once
// the copy is open, so that a crash leaves at most one.
constexpr char kCopy[] = "backup.tmp";

// Copies on the storage thread, sends on the files' thread.
class BackupCall final : public grpc::ServerWriteReactor<v1::BackupChunk>,
                         public std::enable_shared_from_this<BackupCall> {
 public:
  BackupCall(const AdminService::Surroundings& surroundings, AdminService::Busy busy)
      : around_(surroundings), busy_(std::move(busy)) {}

  ~BackupCall() override {
    if (copying_) *busy_ = false;
  }

  void Start(const absl::Status& admitted) {
    self_ = shared_from_this();
    if (!admitted.ok()) return End(admitted);
    copying_ = !busy_->exchange(true);
    if (!copying_) {
      return End(runtime::WithReason(absl::UnavailableError("backup: another one is under way"),
                                     {.reason = "BACKUP_UNDER_WAY"}));
    }
    around_.storage.Post([self = self_] { self->Copy(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("backup: the caller left"));
    around_.files.Post([self = shared_from_this()] { self->SendNext(); });
  }

  // gRPC's share ends; posted tasks hold theirs. A write that is cancelled comes back as not ok.
  void OnDone() override { const std::shared_ptr<BackupCall> last = std::move(self_); }

 private:
  // The storage thread makes one copy at a time, and each loses its name before the next begins.
  void Copy() {
    const std::string path = around_.state_folder + "/" + kCopy;
    ::unlink(path.c_str());
    const absl::Status copied = around_.store.Backup(path);
    auto reader = ArtifactReader::Open(around_.state_folder, kCopy);
    ::unlink(path.c_str());
    if (!copied.ok()) return End(copied);
    if (!reader.ok()) return End(reader.status());
    reader_.emplace(*std::move(reader));
    around_.files.Post([self = shared_from_this()] { self->SendNext(); });
  }

  void SendNext() {
    absl::StatusOr<std::string> bytes = reader_->Read(kChunkBytesMax);
    if (!bytes.ok() || bytes->empty()) return End(bytes.status());
    chunk_.set_data(*std::move(bytes));
    StartWrite(&chunk_);
  }

  void End(const absl::Status& status) {
    CountCall(around_.metrics, "Admin/Backup", status);
    Finish(runtime::ToGrpc(status));
  }

  const AdminService::Surroundings around_;
  const AdminService::Busy busy_;
  bool copying_ = false;                  // this call set busy_; constant after Start
  std::shared_ptr<BackupCall> self_;      // gRPC's share, until OnDone
  std::optional<ArtifactReader> reader_;  // storage thread, then files' thread
  v1::BackupChunk chunk_;                 // gRPC reads it while a write is under way
};

}  // namespace

grpc::ServerWriteReactor<v1::BackupChunk>* StartBackup(
    const AdminService::Surroundings& surroundings, const absl::Status& admitted,
    const AdminService::Busy& busy) {
  const auto call = std::make_shared<BackupCall>(surroundings, busy);
  call->Start(admitted);
  return call.get();
}

}  // namespace tactus::service
