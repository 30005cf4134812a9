#include "coordinator/service/backup_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/files/artifacts.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/files/store_copying.h"
#include "coordinator/files/transfer_slots.h"
#include "coordinator/service/calls.h"

namespace tactus::service {
namespace {

constexpr std::size_t kChunkBytesMax = 1u << 20;

// Copies on the storage thread, sends on the files' thread.
class BackupCall final : public OwnedCall<BackupCall, grpc::ServerWriteReactor<v1::BackupChunk>> {
 public:
  BackupCall(const AdminService::Surroundings& surroundings, grpc::CallbackServerContext* context)
      : OwnedCall(context, surroundings.door, "Admin/Backup"),
        around_(surroundings),
        context_(context) {}

  void Start() {
    const std::shared_ptr<BackupCall> self = Hold();
    if (!visit().admitted().ok()) return End(visit().admitted());
    copying_ = !around_.copy_slot->exchange(true);
    if (!copying_) return End(AdminService::UnderWay());
    CopyStore({.storage = around_.storage,
               .store = around_.store,
               .path = Path(),
               .cancelled = [self] { return self->context_->IsCancelled(); }},
              [self](const absl::Status& copied) { self->OnCopied(copied); });
  }

  void OnWriteDone(bool ok) override {
    around_.files.Post([self = shared_from_this(), ok] {
      self->stall_->Cancel();
      ok ? self->SendNext() : self->End(absl::CancelledError("backup: the caller left"));
    });
  }

 private:
  std::string Path() const { return around_.state_folder + "/" + kCopyName; }

  // The copy loses its name once it is open, so that a crash leaves at most one.
  void OnCopied(const absl::Status& copied) {
    if (!copied.ok()) return End(copied);
    auto reader = ArtifactReader::Open(around_.state_folder, kCopyName);
    RemoveCopy(Path());
    if (!reader.ok()) return End(reader.status());
    reader_.emplace(*std::move(reader));
    around_.files.Post([self = shared_from_this()] {
      self->stall_.emplace(self->around_.files);
      self->SendNext();
    });
  }

  void SendNext() {
    absl::StatusOr<std::string> bytes = reader_->Read(kChunkBytesMax);
    if (!bytes.ok() || bytes->empty()) return End(bytes.status());
    chunk_.set_data(*std::move(bytes));
    // Nobody else has a backup while this one is not taken.
    stall_->After(TransferSlots::Limits{}.stall, [this] { context_->TryCancel(); });
    StartWrite(&chunk_);
  }

  void End(const absl::Status& status) {
    reader_.reset();
    if (copying_) *around_.copy_slot = false;
    FinishWith(status);
  }

  const AdminService::Surroundings around_;
  grpc::CallbackServerContext* const context_;  // alive until OnDone
  bool copying_ = false;                        // this call has the slot; constant after Start
  std::optional<ArtifactReader> reader_;        // storage thread, then files' thread
  std::optional<runtime::Timer> stall_;         // files' thread; runs while a write is under way
  v1::BackupChunk chunk_;                       // gRPC reads it while a write is under way
};

}  // namespace

grpc::ServerWriteReactor<v1::BackupChunk>* StartBackup(
    const AdminService::Surroundings& surroundings, grpc::CallbackServerContext* context) {
  const auto call = std::make_shared<BackupCall>(surroundings, context);
  call->Start();
  return call.get();
}

}  // namespace tactus::service
