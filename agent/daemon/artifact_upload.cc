#include "agent/daemon/artifact_upload.h"

#include <grpcpp/support/sync_stream.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/status.h"
#include "tactus/agent/v1/session.grpc.pb.h"

namespace tactus::agent {
namespace {

using tactus::agent::v1::AgentSession;
using tactus::agent::v1::UploadArtifactRequest;
using tactus::agent::v1::UploadArtifactResponse;

constexpr std::size_t kChunkBytes = 1u << 20;
constexpr std::size_t kPathBytesMax = 255;
constexpr int kAttemptsMax = 5;
// A transfer may take a minute, and a second for every MiB.
constexpr std::chrono::seconds kDeadlineBase{60};

// One attempt; blocks.
absl::Status Transfer(AgentSession::Stub& stub, const ArtifactFile& file,
                      grpc::ClientContext& context) {
  const std::filesystem::path path = std::filesystem::path(file.folder) / file.path;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(path.string() + ": " + error.message());
  std::ifstream in(path, std::ios::binary);
  const auto limit = kDeadlineBase + std::chrono::seconds(size / kChunkBytes);
  context.set_deadline(
      std::chrono::system_clock::time_point(std::chrono::nanoseconds(runtime::WallNow()) + limit));
  UploadArtifactResponse response;
  const std::unique_ptr<grpc::ClientWriter<UploadArtifactRequest>> writer =
      stub.UploadArtifact(&context, &response);
  UploadArtifactRequest request;
  request.set_job_id(file.job_id);
  request.set_path(file.path);
  request.set_size_bytes(size);
  std::string chunk(kChunkBytes, '\0');
  bool accepted = true;
  do {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    request.set_data(chunk.data(), static_cast<std::size_t>(in.gcount()));
    accepted = writer->Write(request);
    request.Clear();
  } while (accepted && in);
  writer->WritesDone();
  return runtime::FromGrpc(writer->Finish());
}

// Another attempt would end the same way.
bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

absl::Status CheckArtifactPath(const std::string& path) {
  const std::filesystem::path parsed(path);
  bool inside = !path.empty() && path.size() <= kPathBytesMax && parsed.is_relative() &&
                path.find('\0') == std::string::npos && parsed.has_filename();
  for (const std::filesystem::path& part : parsed) inside = inside && part != "..";
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError("file '" + path +
                                    "': must be a path within the result's folder");
}

ArtifactUploader::ArtifactUploader(runtime::ControlThread& control,
                                   std::shared_ptr<grpc::Channel> channel,
                                   runtime::BackoffOptions backoff)
    : control_(control),
      channel_(std::move(channel)),
      backoff_(backoff),
      rng_(1),
      retry_timer_(control) {}

ArtifactUploader::~ArtifactUploader() {
  if (call_ != nullptr) call_->TryCancel();
  thread_.join();
}

void ArtifactUploader::Upload(ArtifactFile file, DoneHandler done) {
  queue_.push_back({.file = std::move(file), .done = std::move(done)});
  if (queue_.size() == 1) Begin();
}

void ArtifactUploader::Begin() {
  call_ = std::make_shared<grpc::ClientContext>();
  auto finished = lifetime_.Guard([this](const absl::Status& status) { OnAttempt(status); });
  boost::asio::post(thread_, [this, call = call_, file = queue_.front().file, finished]() mutable {
    // The destructor waits for this thread, so the members are there.
    const std::unique_ptr<AgentSession::Stub> stub = AgentSession::NewStub(channel_);
    const absl::Status status = Transfer(*stub, file, *call);
    control_.Post([finished, status]() mutable { finished(status); });
  });
}

void ArtifactUploader::OnAttempt(const absl::Status& status) {
  call_.reset();
  Item& item = queue_.front();
  ++item.failures;
  const bool again = !status.ok() && !IsPermanent(status) &&
                     (runtime::IsRetryable(status) || item.failures < kAttemptsMax);
  if (again) {
    runtime::Logger("agent")->debug("upload failed job={} path={} reason={}", item.file.job_id,
                                    runtime::Quoted(item.file.path),
                                    runtime::Quoted(std::string(status.message())));
    return retry_timer_.After(runtime::BackoffDelay(backoff_, item.failures, rng_),
                              [this] { Begin(); });
  }
  const DoneHandler done = std::move(item.done);
  queue_.pop_front();
  if (!queue_.empty()) Begin();
  done(status);
}

}  // namespace tactus::agent
