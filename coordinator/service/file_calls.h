// What calls that move files have in common: the two directions of a stream of chunks.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/service/artifacts.h"
#include "coordinator/service/blob_store.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/core_runner.h"
#include "coordinator/service/log_store.h"
#include "runtime/control_thread.h"
#include "runtime/metrics.h"
#include "runtime/status.h"

namespace tactus::service {

// What calls that move files need; all outlive the calls.
struct FileSurroundings {
  CoreRunner& core;
  runtime::ControlThread& files;  // where files are read and written
  runtime::CoordinatorMetrics& metrics;
  const std::string& state_folder;
  BlobStore& blobs;  // files' thread
  LogStore& logs;    // files' thread
};

// Sends one file to the caller. All but gRPC's reactions runs on the files' thread. A call owns
// itself, from Start of a subclass until OnDone.
template <typename Chunk>
class SendingCall : public grpc::ServerWriteReactor<Chunk>,
                    public std::enable_shared_from_this<SendingCall<Chunk>> {
 public:
  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("download: the caller left"));
    around_.files.Post([self = this->shared_from_this()] { self->SendNext(); });
  }

  // gRPC's share ends; posted tasks hold theirs. A write that is cancelled comes back as not ok.
  void OnDone() override { const std::shared_ptr<SendingCall> last = std::move(self_); }

 protected:
  // `method`: as CountCall has it.
  SendingCall(const FileSurroundings& surroundings, const char* method)
      : around_(surroundings), method_(method) {}

  void Hold() { self_ = this->shared_from_this(); }

  // Files' thread, once: what is to be sent, or why not.
  void Send(absl::StatusOr<ArtifactReader> reader) {
    if (!reader.ok()) return End(reader.status());
    reader_.emplace(*std::move(reader));
    SendNext();
  }

  void End(const absl::Status& status) {
    CountCall(around_.metrics, method_, status);
    this->Finish(runtime::ToGrpc(status));
  }

  const FileSurroundings around_;

 private:
  static constexpr std::size_t kChunkBytesMax = 1u << 20;

  void SendNext() {
    absl::StatusOr<std::string> bytes = reader_->Read(kChunkBytesMax);
    if (!bytes.ok() || bytes->empty()) return End(bytes.status());
    chunk_.set_data(*std::move(bytes));
    this->StartWrite(&chunk_);
  }

  const char* const method_;
  std::shared_ptr<SendingCall> self_;  // gRPC's share, until OnDone
  // Files' thread:
  std::optional<ArtifactReader> reader_;
  Chunk chunk_;  // gRPC reads it while a write is under way
};

// Takes one file from the caller into the blobs. All but gRPC's reactions runs on the files'
// thread. A call owns itself, from Begin until OnDone.
template <typename Request>
class ReceivingCall : public grpc::ServerReadReactor<Request>,
                      public std::enable_shared_from_this<ReceivingCall<Request>> {
 public:
  void Begin() {
    self_ = this->shared_from_this();
    this->StartRead(&read_);
  }

  void OnReadDone(bool ok) override {
    around_.files.Post([self = this->shared_from_this(), ok] { self->Received(ok); });
  }

  // gRPC's share ends; posted tasks hold theirs. A read that is cancelled comes back as not ok.
  void OnDone() override { const std::shared_ptr<ReceivingCall> last = std::move(self_); }

 protected:
  // `method`: as CountCall has it.
  ReceivingCall(const FileSurroundings& surroundings, const char* method)
      : around_(surroundings), method_(method) {}

  // The first message, on the files' thread: answered with Accept, there too, or with End.
  virtual void Opened(const Request& first) = 0;
  // The blob is whole and durable: answered with End, from any thread.
  virtual void Kept(const std::string& sha256) = 0;

  void Accept(const BlobStore::Upload& upload) {
    absl::StatusOr<BlobWriter> writer = around_.blobs.Write(upload);
    if (!writer.ok()) return End(writer.status());
    writer_.emplace(*std::move(writer));
    if (writer_->complete()) return Complete();
    CatchUp();
  }

  void End(const absl::Status& status) {
    CountCall(around_.metrics, method_, status);
    this->Finish(runtime::ToGrpc(status));
  }

  const FileSurroundings around_;

 private:
  void Received(bool ok) {
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
    const absl::Status status = writer_->Append(read_.data());
    if (!status.ok()) return End(status);
    this->StartRead(&read_);
  }

  void Complete() {
    const absl::StatusOr<std::string> sha256 = writer_->Commit();
    if (!sha256.ok()) return End(sha256.status());
    Kept(*sha256);
  }

  const char* const method_;
  std::shared_ptr<ReceivingCall> self_;  // gRPC's share, until OnDone
  Request read_;                         // gRPC writes it while a read is under way
  std::optional<BlobWriter> writer_;     // files' thread
};

}  // namespace tactus::service
