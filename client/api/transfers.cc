// The transfers of Client: results, blobs and backups in chunks.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "client/api/client.h"
#include "client/api/deadline.h"
#include "runtime/arriving_file.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::api {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// What has arrived of a transfer, over all its attempts.
struct Arrived {
  std::uint64_t bytes = 0;
  runtime::Sha256 hash{};
  absl::Status written{};  // of the caller's function
};

// Chunks of one attempt. Returns what the stream ended with.
template <typename Reader, typename Chunk>
grpc::Status ReadChunks(Reader& reader, grpc::ClientContext& context, const Client::Write& write,
                        Chunk chunk, Arrived* arrived) {
  while (arrived->written.ok() && reader.Read(&chunk)) {
    arrived->written = write(chunk.data());
    arrived->bytes += chunk.data().size();
    arrived->hash.Update(chunk.data());
  }
  if (!arrived->written.ok()) context.TryCancel();
  return reader.Finish();
}

absl::Status Compare(const std::string& what, const Content& expected, Arrived* arrived) {
  const bool counted = expected.size_bytes > 0 || expected.sha256.empty();
  if (counted && arrived->bytes != expected.size_bytes) {
    return absl::DataLossError(what + ": " + std::to_string(arrived->bytes) + " bytes came, " +
                               std::to_string(expected.size_bytes) + " were announced");
  }
  if (expected.sha256.empty()) return absl::OkStatus();
  const std::string found = arrived->hash.Finish();
  if (found == expected.sha256) return absl::OkStatus();
  return absl::DataLossError(what + ": what came has the hash " + found + ", announced was " +
                             expected.sha256);
}

}  // namespace

Duration Client::TransferTimeout(std::uint64_t size_bytes) const {
  const double mebibytes = static_cast<double>(size_bytes) / (1 << 20);
  return options_.request_timeout + Seconds(std::min(mebibytes, 1e6));
}

absl::Status Client::DownloadArtifact(const v1::DownloadArtifactRequest& request,
                                      const Content& content, const Write& write) {
  Arrived arrived;
  v1::DownloadArtifactRequest rest = request;
  for (int attempt = 1;; ++attempt) {
    rest.set_offset(request.offset() + arrived.bytes);
    grpc::ClientContext context;
    SetTimeout(TransferTimeout(content.size_bytes), &context);
    const auto reader = jobs_->DownloadArtifact(&context, rest);
    const grpc::Status status = ReadChunks(*reader, context, write, v1::ArtifactChunk(), &arrived);
    if (!arrived.written.ok()) return arrived.written;
    if (status.ok()) return Compare(request.path(), content, &arrived);
    const absl::Status translated = Translate(status);
    if (!runtime::IsRetryable(translated) || attempt >= options_.attempts_max) return translated;
    std::this_thread::sleep_for(runtime::BackoffDelay(options_.backoff, attempt, rng_));
  }
}

absl::Status Client::DownloadBlob(const std::string& sha256, const Write& write) {
  Arrived arrived;
  v1::DownloadBlobRequest rest;
  rest.set_sha256(sha256);
  for (int attempt = 1;; ++attempt) {
    rest.set_offset(arrived.bytes);
    grpc::ClientContext context;
    SetTimeout(TransferTimeout(runtime::kBlobBytesMax), &context);
    const auto reader = artifacts_->DownloadBlob(&context, rest);
    const grpc::Status status = ReadChunks(*reader, context, write, v1::BlobChunk(), &arrived);
    if (!arrived.written.ok()) return arrived.written;
    if (status.ok()) return Compare("the blob", {.sha256 = sha256}, &arrived);
    const absl::Status translated = Translate(status);
    if (!runtime::IsRetryable(translated) || attempt >= options_.attempts_max) return translated;
    std::this_thread::sleep_for(runtime::BackoffDelay(options_.backoff, attempt, rng_));
  }
}

absl::Status Client::UploadFrom(const std::string& path, const Content& content,
                                std::uint64_t offset, v1::Blob* blob) {
  std::ifstream in(path, std::ios::binary);
  if (!in || !in.seekg(static_cast<std::streamoff>(offset))) {
    return runtime::FileError(errno, path, "cannot be read");
  }
  grpc::ClientContext context;
  SetTimeout(TransferTimeout(content.size_bytes), &context);
  const auto writer = artifacts_->UploadBlob(&context, blob);
  v1::UploadBlobRequest request;
  request.set_sha256(content.sha256);
  request.set_size_bytes(content.size_bytes);
  request.set_offset(offset);
  bool wanted = writer->Write(request);
  request.Clear();
  std::vector<char> chunk(kChunkBytes);
  while (wanted && in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (in.gcount() == 0) break;
    request.set_data(chunk.data(), static_cast<std::size_t>(in.gcount()));
    wanted = writer->Write(request);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  return status.ok() ? absl::OkStatus() : Translate(status);
}

absl::StatusOr<v1::Blob> Client::UploadFile(const std::string& path) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) return runtime::FileError(error.value(), path, "cannot be read");
  const absl::StatusOr<std::string> sha256 = runtime::HashFile(path);
  if (!sha256.ok()) return sha256.status();
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<v1::Blob> blob = GetBlob(*sha256);
    if (!blob.ok() || blob->complete()) return blob;
    const absl::Status status = UploadFrom(path, {.size_bytes = size, .sha256 = *sha256},
                                           std::min(blob->received_bytes(), size), &*blob);
    if (status.ok() && blob->complete()) return blob;
    if (status.ok()) return absl::AbortedError(path + ": changed while it was sent");
    if (!runtime::IsRetryable(status) || attempt >= options_.attempts_max) return status;
    std::this_thread::sleep_for(runtime::BackoffDelay(options_.backoff, attempt, rng_));
  }
}

absl::Status Client::Backup(const Write& write) {
  constexpr std::uint64_t kDatabaseBytesMax = std::uint64_t{64} << 30;
  Arrived arrived;
  grpc::ClientContext context;
  SetTimeout(TransferTimeout(kDatabaseBytesMax), &context);
  const auto reader = admin_->Backup(&context, v1::BackupRequest());
  const grpc::Status status = ReadChunks(*reader, context, write, v1::BackupChunk(), &arrived);
  if (!arrived.written.ok()) return arrived.written;
  return status.ok() ? absl::OkStatus() : Translate(status);
}

}  // namespace tactus::api
