// What calls that move files have in common: the two directions of a stream of chunks.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/files/artifacts.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/disk_floor.h"
#include "coordinator/files/folder_blobs.h"
#include "coordinator/files/log_store.h"
#include "coordinator/files/transfer_slots.h"
#include "coordinator/files/upload_accounts.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/provenance_records.h"
#include "coordinator/shell/core_runner.h"
#include "runtime/control_thread.h"
#include "runtime/now.h"
#include "runtime/options.h"
#include "runtime/status.h"

namespace tactus::service {

// What calls that move files need; all outlive the calls.
struct FileSurroundings {
  CoreRunner& core;
  runtime::ControlThread& files;  // where files are read and written
  const Door& door;
  const std::string& state_folder;
  BlobStore& blobs;          // files' thread
  LogStore& logs;            // files' thread
  TransferSlots& transfers;  // files' thread
  UploadAccounts& accounts;  // files' thread
  const DiskFloor& floor;    // likewise, as it blocks
  const ProvenanceRecords& provenance;
};

// A call that is destroyed on the files' thread, whoever leaves it last.
template <typename Call, typename... Arguments>
std::shared_ptr<Call> MakeFileCall(const FileSurroundings& around, Arguments&&... arguments) {
  return std::shared_ptr<Call>(
      new Call(around, std::forward<Arguments>(arguments)...),
      [&files = around.files](Call* call) { files.Post([last = std::shared_ptr<Call>(call)] {}); });
}

// Sends one file to the caller. Made by MakeFileCall; all but gRPC's reactions runs on the files'
// thread. A subclass's Start holds it. A caller who does not take the next chunk within
// TransferSlots::Limits::stall is cut off.
template <typename Chunk>
class SendingCall : public OwnedCall<SendingCall<Chunk>, grpc::ServerWriteReactor<Chunk>> {
 public:
  void OnWriteDone(bool ok) override {
    around_.files.Post([self = this->shared_from_this(), ok] {
      self->stall_->Cancel();
      ok ? self->SendNext() : self->End(absl::CancelledError("download: the caller left"));
    });
  }

 protected:
  // `method`: as Visit has it.
  SendingCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
              const char* method)
      : SendingCall::OwnedCall(context, surroundings.door, method),
        around_(surroundings),
        context_(context) {}

  // Files' thread, once: what is to be sent, or why not.
  void Send(absl::StatusOr<std::unique_ptr<BlobReader>> reader) {
    if (!reader.ok()) return End(reader.status());
    absl::StatusOr<TransferSlots::Slot> slot = around_.transfers.Take(Transfer::kDownload);
    if (!slot.ok()) return End(slot.status());
    slot_.emplace(*std::move(slot));
    reader_ = *std::move(reader);
    stall_.emplace(around_.files);
    SendNext();
  }

  void End(const absl::Status& status) { this->FinishWith(status); }

  const FileSurroundings around_;

 private:
  static constexpr std::size_t kChunkBytesMax = 256u << 10;

  void SendNext() {
    const absl::Status still = this->visit().Still();
    if (!still.ok()) return End(still);
    reader_->Read(kChunkBytesMax, [self = this->shared_from_this()](auto bytes) {
      self->SendBytes(std::move(bytes));
    });
  }

  void SendBytes(absl::StatusOr<std::string> bytes) {
    if (!bytes.ok() || bytes->empty()) return End(bytes.status());
    chunk_.set_data(*std::move(bytes));
    // Behind the chunk no status would reach the caller. The write comes back as not ok, and until
    // it does the context is there.
    stall_->After(around_.transfers.limits().stall, [this] { context_->TryCancel(); });
    this->StartWrite(&chunk_);
  }

  grpc::CallbackServerContext* const context_;
  // Files' thread:
  std::optional<TransferSlots::Slot> slot_;
  std::optional<runtime::Timer> stall_;  // runs while a write is under way
  std::unique_ptr<BlobReader> reader_;
  Chunk chunk_;  // gRPC reads it while a write is under way
};

// Takes one file from the caller into the blobs. Made by MakeFileCall; all but gRPC's reactions
// runs on the files' thread. One that is waited for longer than TransferSlots::Limits::stall
// without a step is ended; what came stays.
template <typename Request>
class ReceivingCall : public OwnedCall<ReceivingCall<Request>, grpc::ServerReadReactor<Request>> {
 public:
  void Begin() {
    around_.files.Post([self = this->Hold()] { self->Admit(); });
  }

  void OnReadDone(bool ok) override {
    around_.files.Post([self = this->shared_from_this(), ok] { self->Received(ok); });
  }

 protected:
  // `method`: as Visit has it.
  struct Kind {
    Transfer transfer;
    const char* method;
  };
  ReceivingCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
                const Kind& kind)
      : ReceivingCall::OwnedCall(context, surroundings.door, kind.method),
        around_(surroundings),
        transfer_(kind.transfer) {}

  // The first message, on the files' thread: answered with Accept, there too, or with End.
  virtual void Opened(const Request& first) = 0;
  // Whether the next bytes of it may be written.
  virtual absl::Status MayGoOn() const { return absl::OkStatus(); }
  // The blob is whole and durable: answered with End, from any thread.
  virtual void Kept(const std::string& sha256) = 0;
  // Whether the blob is read back before it is Kept: something else will be removed for it.
  virtual bool ReadsBack() const { return false; }

  void Accept(const BlobStore::Upload& upload) {
    absl::StatusOr<BlobWriter> writer = around_.blobs.Write(upload);
    if (!writer.ok()) return End(writer.status());
    writer_.emplace(*std::move(writer));
    if (writer_->complete()) return Complete();
    CatchUp();
  }

  void End(const absl::Status& status) { this->FinishWith(status); }

  const FileSurroundings around_;

 private:
  static constexpr std::size_t kDataBytesMax = 1u << 20;

  void Admit() {
    if (!this->visit().admitted().ok()) return End(this->visit().admitted());
    absl::StatusOr<TransferSlots::Slot> slot = around_.transfers.Take(transfer_);
    if (!slot.ok()) return End(slot.status());
    slot_.emplace(*std::move(slot));
    stall_.emplace(around_.files);
    ReadOn();
  }

  // Only the time counts for which the caller is waited for.
  void ReadOn() {
    asked_ = runtime::Now();
    const Duration stall = around_.transfers.limits().stall;
    const Duration first = this->visit().bounds().first_message;
    const bool sooner = !begun_ && first < stall;
    stall_->After((sooner ? first : stall) - waited_,
                  [this, sooner] { sooner ? NeverBegan() : Stalled(); });
    this->StartRead(&read_);
  }

  void NeverBegan() {
    over_ = true;
    End(access::Beyond(access::Bound::kFirstMessage,
                       "upload: its first message did not come within " +
                           runtime::FormatDuration(this->visit().bounds().first_message)));
  }

  // The read that is under way comes back as not ok once the call is over.
  void Stalled() {
    over_ = true;
    writer_.reset();
    End(runtime::WithReason(
        absl::UnavailableError("upload: less than " + std::to_string(TransferSlots::kStepBytes) +
                               " bytes came within " +
                               runtime::FormatDuration(around_.transfers.limits().stall) +
                               "; ask how much has come and go on from there"),
        {.reason = "UPLOAD_STALLED"}));
  }

  void Received(bool ok) {
    if (over_) return;
    stall_->Cancel();
    begun_ = true;
    const absl::Status still = this->visit().Still();
    if (!still.ok()) return End(still);
    waited_ += runtime::Now() - asked_;
    step_bytes_ += ok ? read_.data().size() : 0;
    if (step_bytes_ >= TransferSlots::kStepBytes) {
      step_bytes_ = 0;
      waited_ = {};
    }
    if (ok && read_.data().size() > kDataBytesMax) {
      return End(runtime::InvalidFields(
          {{.field = "data",
            .description = "found " + std::to_string(read_.data().size()) + " bytes, allowed are " +
                           std::to_string(kDataBytesMax)}}));
    }
    if (!writer_.has_value()) {
      return ok ? Opened(read_) : End(absl::InvalidArgumentError("upload: is empty"));
    }
    ok ? Append() : Complete();
  }

  // What came before a break, piece by piece, so that others have their turn in between.
  void CatchUp() {
    const absl::StatusOr<bool> done = writer_->CatchUp();
    if (!done.ok()) return End(done.status());
    if (*done) return Append();
    around_.files.Post([self = this->shared_from_this()] { self->CatchUp(); });
  }

  void Append() {
    absl::Status status = MayGoOn();
    if (status.ok()) status = writer_->Append(read_.data());
    if (!status.ok()) return End(status);
    ReadOn();
  }

  void Complete() {
    const absl::StatusOr<std::string> sha256 = writer_->Commit();
    if (!sha256.ok()) return End(sha256.status());
    ReadsBack() ? ReadBack(*sha256) : Keep(*sha256);
  }

  // Piece by piece, as CatchUp.
  void ReadBack(const std::string& sha256) {
    const absl::StatusOr<bool> done = writer_->ReadBack();
    if (!done.ok()) return End(done.status());
    if (*done) return Keep(sha256);
    around_.files.Post([self = this->shared_from_this(), sha256] { self->ReadBack(sha256); });
  }

  // Nothing is read meanwhile, so nobody tells of a caller who leaves: what came is kept then, too.
  void Keep(const std::string& sha256) {
    around_.blobs.Keep(sha256,
                       [self = this->shared_from_this(), sha256](const absl::Status& status) {
                         status.ok() ? self->Kept(sha256) : self->End(status);
                       });
  }

  const Transfer transfer_;
  Request read_;  // gRPC writes it while a read is under way
  // Files' thread:
  std::optional<TransferSlots::Slot> slot_;
  std::optional<runtime::Timer> stall_;  // runs while a read is under way
  Instant asked_{};                      // when the latest read began
  Duration waited_{};                    // for the present step
  std::size_t step_bytes_ = 0;           // that came of it
  bool begun_ = false;                   // the first message came
  bool over_ = false;                    // it stalled
  std::optional<BlobWriter> writer_;     // held until the blob's name is durable; see BlobWriter
};

}  // namespace tactus::service
