#include "agent/daemon/artifact_upload.h"

#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "agent/box/beneath.h"
#include "agent/daemon/transfer.h"
#include "runtime/logging.h"
#include "runtime/sha256.h"
#include "runtime/status.h"
#include "tactus/agent/v1/session.grpc.pb.h"
#include "tactus/v1/artifacts.grpc.pb.h"

namespace tactus::agent {
namespace {

using tactus::agent::v1::AgentSession;
using tactus::agent::v1::UploadArtifactRequest;
using tactus::agent::v1::UploadArtifactResponse;

constexpr std::size_t kChunkBytes = 1u << 20;
constexpr std::size_t kPathBytesMax = 255;
// A transfer may take a minute, and a second for every MiB.
constexpr std::chrono::seconds kDeadlineBase{60};
constexpr std::chrono::seconds kQuestionLimit{30};

// Asks how much of the file the coordinator has.
absl::StatusOr<std::uint64_t> AskOffset(const std::shared_ptr<grpc::Channel>& channel,
                                        const std::string& sha256) {
  grpc::ClientContext context;
  SetLimit(context, kQuestionLimit);
  tactus::v1::GetBlobRequest request;
  request.set_sha256(sha256);
  tactus::v1::Blob blob;
  const absl::Status status =
      runtime::FromGrpc(tactus::v1::Artifacts::NewStub(channel)->GetBlob(&context, request, &blob));
  if (!status.ok()) return status;
  return blob.received_bytes();
}

// Sends the file from `first.offset` on.
absl::Status Send(AgentSession::Stub& stub, UploadArtifactRequest first, std::ifstream& in,
                  grpc::ClientContext& context) {
  UploadArtifactResponse response;
  const std::unique_ptr<grpc::ClientWriter<UploadArtifactRequest>> writer =
      stub.UploadArtifact(&context, &response);
  in.seekg(static_cast<std::streamoff>(first.offset()));
  std::string chunk(kChunkBytes, '\0');
  bool accepted = true;
  do {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    first.set_data(chunk.data(), static_cast<std::size_t>(in.gcount()));
    accepted = writer->Write(first);
    first.Clear();
  } while (accepted && in);
  writer->WritesDone();
  return runtime::FromGrpc(writer->Finish());
}

absl::Status GivenUp() { return absl::CancelledError("it is not needed any more"); }

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

ArtifactUploader::ArtifactUploader(runtime::ControlThread& control, const ChannelSource& channel,
                                   runtime::BackoffOptions backoff)
    : control_(control), channel_(channel), backoff_(backoff), rng_(1), retry_timer_(control) {}

ArtifactUploader::~ArtifactUploader() {
  if (call_ != nullptr) call_->Cancel();
  thread_.join();
}

void ArtifactUploader::Upload(ArtifactFile file, DoneHandler done) {
  const auto place = file.gives_way || queue_.empty() ? queue_.end() : FirstToGiveWay();
  queue_.insert(place, {.file = std::move(file), .done = std::move(done)});
  if (queue_.size() == 1) return Begin();
  if (!IsInTheWay()) return;
  if (call_ != nullptr) return call_->Cancel();
  retry_timer_.Cancel();
  GiveWay();
}

std::deque<ArtifactUploader::Item>::iterator ArtifactUploader::FirstToGiveWay() {
  return std::find_if(queue_.begin() + 1, queue_.end(),
                      [](const Item& item) { return item.file.gives_way; });
}

bool ArtifactUploader::IsInTheWay() const {
  return queue_.size() > 1 && queue_[0].file.gives_way && !queue_[1].file.gives_way;
}

void ArtifactUploader::GiveWay() {
  std::rotate(queue_.begin(), queue_.begin() + 1, FirstToGiveWay());
  Begin();
}

void ArtifactUploader::GiveUp(WorkerId worker, const std::string& path) {
  const auto found = std::ranges::find_if(queue_, [&](const Item& item) {
    return item.file.worker == worker && item.file.path == path;
  });
  if (found == queue_.end()) return;
  if (found != queue_.begin()) {
    const DoneHandler done = std::move(found->done);
    queue_.erase(found);
    return done(GivenUp());
  }
  if (call_ != nullptr) {
    found->given_up = true;
    return call_->Cancel();
  }
  retry_timer_.Cancel();
  waiting_ = false;
  EndFirst(GivenUp());
}

void ArtifactUploader::Pause(bool paused) {
  paused_ = paused;
  if (!paused_ && std::exchange(waiting_, false)) Begin();
}

absl::Status ArtifactUploader::Transfer(const std::shared_ptr<grpc::Channel>& channel,
                                        const ArtifactFile& file, UploadedFile& known, Call& call) {
  // Opened once, whatever the worker puts at the path meanwhile.
  const absl::StatusOr<Descriptor> opened = box::OpenFileBeneath(file.folder, file.path);
  if (!opened.ok()) return opened.status();
  const std::filesystem::path path = "/proc/self/fd/" + std::to_string(opened->get());
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(file.path + ": " + error.message());
  if (known.sha256.empty()) {
    absl::StatusOr<std::string> found = runtime::HashFile(path.string(), call.stop.get_token());
    if (!found.ok()) return found.status();
    known.sha256 = *std::move(found);
  }
  known.size_bytes = size;
  const absl::StatusOr<std::uint64_t> offset = AskOffset(channel, known.sha256);
  if (!offset.ok()) return offset.status();
  std::ifstream in(path, std::ios::binary);
  SetLimit(call.context, kDeadlineBase + std::chrono::seconds(size / kChunkBytes));
  UploadArtifactRequest first;
  first.set_job_id(file.job_id);
  first.set_path(file.path);
  first.set_worker_id(file.worker.value);
  first.set_size_bytes(size);
  first.set_sha256(known.sha256);
  first.set_offset(std::min<std::uint64_t>(*offset, size));
  return Send(*AgentSession::NewStub(channel), std::move(first), in, call.context);
}

void ArtifactUploader::Begin() {
  waiting_ = paused_;
  if (paused_) return;
  call_ = std::make_shared<Call>();
  auto finished = lifetime_.Guard([this](const absl::Status& status, const UploadedFile& known) {
    queue_.front().known = known;
    OnAttempt(status);
  });
  boost::asio::post(thread_, [this, call = call_, file = queue_.front().file,
                              known = queue_.front().known, finished]() mutable {
    // The destructor waits for this thread, so the members are there.
    const absl::Status status = Transfer(channel_.Get(), file, known, *call);
    control_.Post([finished, status, known]() mutable { finished(status, known); });
  });
}

void ArtifactUploader::OnAttempt(const absl::Status& status) {
  call_.reset();
  Item& item = queue_.front();
  if (item.given_up && !status.ok()) return EndFirst(GivenUp());
  if (IsInTheWay() && !status.ok()) return GiveWay();  // no failure of its own
  if (paused_ && !status.ok()) return Begin();
  ++item.failures;
  if (WorthTrying(status, item.failures)) {
    runtime::Logger("agent")->debug("upload failed job={} path={} reason={}", item.file.job_id,
                                    runtime::Quoted(item.file.path),
                                    runtime::Quoted(std::string(status.message())));
    return retry_timer_.After(TryAgainAfter(status, backoff_, item.failures, rng_),
                              [this] { Begin(); });
  }
  EndFirst(status);
}

void ArtifactUploader::EndFirst(const absl::Status& status) {
  const Item over = std::move(queue_.front());
  queue_.pop_front();
  if (!queue_.empty()) Begin();
  if (status.ok()) {
    over.done(over.known);
  } else {
    over.done(status);
  }
}

}  // namespace tactus::agent
