// The transfers of Client: results, blobs and backups in chunks.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "client/api/client.h"
#include "client/api/deadline.h"
#include "runtime/arriving_file.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::api {

// What has arrived of a transfer, over all its attempts.
struct Arrived {
  std::uint64_t bytes = 0;
  runtime::Sha256 hash{};
  absl::Status written{};  // of the caller's function
};

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// Chunks of one call. Returns what the stream ended with.
template <typename Chunk, typename Reader>
grpc::Status ReadChunks(Reader& reader, grpc::ClientContext& context, const Client::Write& write,
                        Arrived* arrived) {
  Chunk chunk;
  while (arrived->written.ok() && reader.Read(&chunk)) {
    arrived->written = write(chunk.data());
    arrived->bytes += chunk.data().size();
    arrived->hash.Update(chunk.data());
  }
  if (!arrived->written.ok()) context.TryCancel();
  return reader.Finish();
}

absl::Status Compare(const std::string& what, const Content& expected, Arrived* arrived) {
  if (!expected.known) return absl::OkStatus();
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

template <typename Chunk, typename Open>
absl::Status Client::Download(const Open& open, const Write& write, Arrived* arrived) {
  Call call;
  return Repeatedly(&call, [&]() -> absl::Status {
    while (true) {
      const std::uint64_t before = arrived->bytes;
      grpc::ClientContext context;
      SetTimeout(options_.download_call_max, &context);
      const auto reader = open(&context, before);
      const grpc::Status status = ReadChunks<Chunk>(*reader, context, write, arrived);
      if (!arrived->written.ok()) {
        call.repeat = Repeat::kNo;
        return arrived->written;
      }
      if (status.ok()) return absl::OkStatus();
      if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) return Translate(status);
      if (arrived->bytes == before) return NothingCame(options_.download_call_max);
    }
  });
}

absl::Status Client::DownloadArtifact(const v1::DownloadArtifactRequest& request,
                                      const Content& content, const Write& write) {
  Arrived arrived;
  v1::DownloadArtifactRequest rest = request;
  const absl::Status status = Download<v1::ArtifactChunk>(
      [&](grpc::ClientContext* context, std::uint64_t offset) {
        rest.set_offset(request.offset() + offset);
        return jobs_->DownloadArtifact(context, rest);
      },
      write, &arrived);
  return status.ok() ? Compare(request.path(), content, &arrived) : status;
}

absl::Status Client::DownloadBlob(const std::string& sha256, const Write& write) {
  Arrived arrived;
  v1::DownloadBlobRequest rest;
  rest.set_sha256(sha256);
  const absl::Status status = Download<v1::BlobChunk>(
      [&](grpc::ClientContext* context, std::uint64_t offset) {
        rest.set_offset(offset);
        return artifacts_->DownloadBlob(context, rest);
      },
      write, &arrived);
  return status.ok() ? Compare("the blob", {.sha256 = sha256}, &arrived) : status;
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
  absl::StatusOr<v1::Blob> blob;
  Call call;
  const absl::Status sent = Repeatedly(&call, [&]() -> absl::Status {
    blob = GetBlob(*sha256);  // with repetitions of its own
    if (!blob.ok()) call.repeat = Repeat::kNo;
    if (!blob.ok() || blob->complete()) return blob.status();
    const absl::Status status = UploadFrom(path, {.size_bytes = size, .sha256 = *sha256},
                                           std::min(blob->received_bytes(), size), &*blob);
    if (!status.ok() || blob->complete()) return status;
    return absl::AbortedError(path + ": changed while it was sent");
  });
  if (!sent.ok()) return sent;
  return blob;
}

absl::Status Client::Backup(const Write& write) {
  constexpr std::uint64_t kDatabaseBytesMax = std::uint64_t{64} << 30;
  Arrived arrived;
  grpc::ClientContext context;
  SetTimeout(TransferTimeout(kDatabaseBytesMax), &context);
  const auto reader = admin_->Backup(&context, v1::BackupRequest());
  const grpc::Status status = ReadChunks<v1::BackupChunk>(*reader, context, write, &arrived);
  if (!arrived.written.ok()) return arrived.written;
  return status.ok() ? absl::OkStatus() : Translate(status);
}

}  // namespace tactus::api
