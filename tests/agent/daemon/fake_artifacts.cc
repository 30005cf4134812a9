#include "tests/agent/daemon/fake_artifacts.h"

#include <algorithm>
#include <chrono>

#include "runtime/sha256.h"
#include "tests/agent/daemon/await.h"

namespace tactus::agent {
namespace {

constexpr std::size_t kChunkBytes = 1000;
constexpr std::chrono::milliseconds kLookForCancel{20};

}  // namespace

std::string FakeArtifacts::Add(const std::string& content) {
  runtime::Sha256 hash;
  hash.Update(content);
  const std::string sha256 = hash.Finish();
  AddWrong(sha256, content);
  return sha256;
}

void FakeArtifacts::AddWrong(const std::string& sha256, const std::string& content) {
  const std::lock_guard lock(mutex_);
  blobs_[sha256] = content;
}

void FakeArtifacts::SetReceived(const std::string& sha256, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  received_[sha256] = bytes;
}

void FakeArtifacts::BreakNext(const std::vector<std::size_t>& bytes) {
  const std::lock_guard lock(mutex_);
  breaks_ = bytes;
}

void FakeArtifacts::Shut() {
  const std::lock_guard lock(mutex_);
  shut_ = true;
}

void FakeArtifacts::Open() {
  const std::lock_guard lock(mutex_);
  shut_ = false;
  changed_.notify_all();
}

std::vector<std::uint64_t> FakeArtifacts::AwaitDownloads(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return offsets_.size() >= count; });
  return offsets_;
}

grpc::Status FakeArtifacts::GetBlob(grpc::ServerContext*, const tactus::v1::GetBlobRequest* request,
                                    tactus::v1::Blob* response) {
  const std::lock_guard lock(mutex_);
  response->set_sha256(request->sha256());
  response->set_received_bytes(received_[request->sha256()]);
  return grpc::Status::OK;
}

grpc::Status FakeArtifacts::DownloadBlob(grpc::ServerContext* context,
                                         const tactus::v1::DownloadBlobRequest* request,
                                         grpc::ServerWriter<tactus::v1::BlobChunk>* writer) {
  std::string rest;
  std::size_t limit = std::string::npos;
  {
    std::unique_lock lock(mutex_);
    offsets_.push_back(request->offset());
    changed_.notify_all();
    while (shut_ && !context->IsCancelled()) changed_.wait_for(lock, kLookForCancel);
    const auto found = blobs_.find(request->sha256());
    if (found == blobs_.end()) return {grpc::StatusCode::NOT_FOUND, "no such file here"};
    if (request->offset() > found->second.size()) return {grpc::StatusCode::OUT_OF_RANGE, "offset"};
    rest = found->second.substr(request->offset());
    if (!breaks_.empty()) {
      limit = breaks_.front();
      breaks_.erase(breaks_.begin());
    }
  }
  const std::size_t end = std::min(limit, rest.size());
  for (std::size_t at = 0; at < end; at += kChunkBytes) {
    tactus::v1::BlobChunk chunk;
    chunk.set_data(rest.substr(at, std::min(kChunkBytes, end - at)));
    if (!writer->Write(chunk)) return grpc::Status::CANCELLED;
  }
  return limit == std::string::npos ? grpc::Status::OK
                                    : grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
}

}  // namespace tactus::agent
