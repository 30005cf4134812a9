// Files that go to the coordinator and come from it, over real gRPC: blobs, results, checkpoints.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/store.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "tactus/agent/v1/session.grpc.pb.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

std::string ReasonOf(const absl::Status& status) { return runtime::ReasonOf(status).reason; }

// An upload that its test brings on step by step.
class OpenUpload {
 public:
  OpenUpload(v1::Artifacts::Stub& stub, const v1::UploadBlobRequest& first)
      : writer_(stub.UploadBlob(&context_, &blob_)) {
    writer_->Write(first);
  }
  ~OpenUpload() {
    if (finished_) return;
    context_.TryCancel();
    writer_->Finish();
  }

  // False: the server has ended it.
  bool Send(const std::string& data) {
    v1::UploadBlobRequest request;
    request.set_data(data);
    return writer_->Write(request);
  }
  void Done() { writer_->WritesDone(); }
  // What the server ends it with.
  absl::Status Finish() {
    finished_ = true;
    return runtime::FromGrpc(writer_->Finish());
  }
  const v1::Blob& blob() const { return blob_; }

 private:
  grpc::ClientContext context_;
  v1::Blob blob_;
  const std::unique_ptr<grpc::ClientWriter<v1::UploadBlobRequest>> writer_;
  bool finished_ = false;
};

class TransfersTest : public ServerFixture {
 protected:
  static v1::UploadBlobRequest Header(const std::string& content, std::uint64_t offset = 0) {
    v1::UploadBlobRequest first;
    first.set_sha256(runtime::Sha256Of(content));
    first.set_size_bytes(content.size());
    first.set_offset(offset);
    return first;
  }

  std::unique_ptr<OpenUpload> Begin(const std::string& content, std::uint64_t offset = 0) {
    return std::make_unique<OpenUpload>(*artifacts_, Header(content, offset));
  }

  absl::Status Upload(const std::string& content, std::uint64_t offset = 0) {
    const auto upload = Begin(content, offset);
    constexpr std::size_t kChunk = 1u << 20;
    for (std::size_t at = offset; at < content.size(); at += kChunk) {
      upload->Send(content.substr(at, kChunk));
    }
    upload->Done();
    return upload->Finish();
  }

  v1::Blob GetBlob(const std::string& content) {
    v1::GetBlobRequest request;
    request.set_sha256(runtime::Sha256Of(content));
    const auto blob = Call(artifacts_, &v1::Artifacts::Stub::GetBlob, request);
    EXPECT_TRUE(blob.ok()) << blob.status();
    return blob.ok() ? *blob : v1::Blob();
  }

  // Until so much of it has come.
  void Await(const std::string& content, std::uint64_t received_bytes) {
    ASSERT_TRUE(Eventually([&] { return GetBlob(content).received_bytes() == received_bytes; }));
  }

  absl::StatusOr<std::string> Download(const std::string& content, std::uint64_t offset = 0) {
    grpc::ClientContext context;
    v1::DownloadBlobRequest request;
    request.set_sha256(runtime::Sha256Of(content));
    request.set_offset(offset);
    return All<v1::BlobChunk>(artifacts_->DownloadBlob(&context, request));
  }

  absl::StatusOr<std::string> DownloadArtifact(const std::string& job, const std::string& path,
                                               std::uint64_t offset = 0) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_name(job);
    request.set_path(path);
    request.set_offset(offset);
    return All<v1::ArtifactChunk>(jobs_->DownloadArtifact(&context, request));
  }

  template <typename Chunk, typename Reader>
  static absl::StatusOr<std::string> All(const Reader& reader) {
    std::string bytes;
    Chunk chunk;
    while (reader->Read(&chunk)) bytes += chunk.data();
    const absl::Status status = runtime::FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  // Brings a file of a job as an agent does: the header and `data` in one message.
  absl::Status UploadArtifact(const agent::v1::UploadArtifactRequest& request) {
    const auto stub = agent::v1::AgentSession::NewStub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    agent::v1::UploadArtifactResponse response;
    const auto writer = stub->UploadArtifact(&context, &response);
    writer->Write(request);
    writer->WritesDone();
    return runtime::FromGrpc(writer->Finish());
  }

  static agent::v1::UploadArtifactRequest Artifact(const std::string& content,
                                                   std::uint64_t offset = 0) {
    agent::v1::UploadArtifactRequest request;
    request.set_job_id("small-1");
    request.set_path("model.pt");
    request.set_size_bytes(content.size());
    request.set_sha256(runtime::Sha256Of(content));
    request.set_offset(offset);
    request.set_data(content.substr(offset));
    return request;
  }

  void Restart() {
    Stop();
    Start();
  }

  const std::string content_ = std::string(100'000, 'a') + std::string(100'000, 'b');
};

// ---- Blobs

TEST_F(TransfersTest, ABlobComesBackWholeOrFromAnOffset) {
  EXPECT_FALSE(GetBlob(content_).complete());
  ASSERT_TRUE(Upload(content_).ok());

  EXPECT_TRUE(GetBlob(content_).complete());
  EXPECT_EQ(GetBlob(content_).received_bytes(), content_.size());
  EXPECT_EQ(*Download(content_), content_);
  EXPECT_EQ(*Download(content_, 150'000), content_.substr(150'000));
  EXPECT_EQ(*Download(content_, content_.size()), "");
  EXPECT_TRUE(absl::IsOutOfRange(Download(content_, content_.size() + 1).status()));
  const absl::Status missing = Download("another").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(ReasonOf(missing), "BLOB_NOT_FOUND");
}

TEST_F(TransfersTest, AnUploadThatBreaksGoesOnWhereItCameToAlsoAfterARestart) {
  {
    const auto upload = Begin(content_);
    upload->Send(content_.substr(0, 70'000));
    Await(content_, 70'000);
  }
  EXPECT_TRUE(absl::IsNotFound(Download(content_).status()));
  Restart();

  EXPECT_EQ(GetBlob(content_).received_bytes(), 70'000u);
  EXPECT_TRUE(absl::IsOutOfRange(Upload(content_, 70'001)));
  ASSERT_TRUE(Upload(content_, 70'000).ok());

  EXPECT_EQ(*Download(content_), content_);
}

TEST_F(TransfersTest, OfTwoUploadsOfOneBlobTheLaterGoesOn) {
  const auto first = Begin(content_);
  first->Send(content_.substr(0, 70'000));
  Await(content_, 70'000);

  EXPECT_TRUE(Upload(content_, 50'000).ok());

  first->Send(content_.substr(70'000));
  first->Done();
  EXPECT_TRUE(absl::IsAborted(first->Finish()));
  EXPECT_EQ(*Download(content_), content_);
}

TEST_F(TransfersTest, WhatHasAnotherHashIsRefusedAndRemoved) {
  v1::UploadBlobRequest first = Header(content_);
  first.set_data(std::string(content_.size(), 'x'));
  OpenUpload upload(*artifacts_, first);
  upload.Done();

  const absl::Status status = upload.Finish();

  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(ReasonOf(status), "WRONG_CONTENT_HASH");
  EXPECT_EQ(GetBlob(content_).received_bytes(), 0u);
  EXPECT_TRUE(Upload(content_).ok());
}

TEST_F(TransfersTest, UploadsThatAreNotProperAreRefusedByTheirField) {
  OpenUpload nameless(*artifacts_, v1::UploadBlobRequest());
  EXPECT_EQ(runtime::FieldViolations(nameless.Finish()).at(0).field, "sha256");
  v1::UploadBlobRequest huge = Header(content_);
  huge.set_size_bytes(std::uint64_t{1} << 40);
  OpenUpload too_large(*artifacts_, huge);
  EXPECT_EQ(runtime::FieldViolations(too_large.Finish()).at(0).field, "size_bytes");
  const std::string large(3u << 20, 'x');
  const auto long_piece = Begin(large);
  long_piece->Send(large.substr(0, (1u << 20) + 1));
  EXPECT_EQ(runtime::FieldViolations(long_piece->Finish()).at(0).field, "data");
}

// ---- Those that stand still, and too many of them

TEST_F(TransfersTest, AnUploadThatStandsStillIsEndedAndWhatCameStays) {
  options_.transfers.stall = std::chrono::milliseconds(200);
  Restart();
  const auto upload = Begin(content_);
  upload->Send(content_.substr(0, 70'000));

  const absl::Status status = upload->Finish();

  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ReasonOf(status), "UPLOAD_STALLED");
  EXPECT_TRUE(runtime::RetryDelayOf(status).has_value());
  EXPECT_EQ(GetBlob(content_).received_bytes(), 70'000u);
  EXPECT_TRUE(Upload(content_, 70'000).ok());
  EXPECT_EQ(*Download(content_), content_);
}

TEST_F(TransfersTest, AnUploadWithoutAHeaderIsEndedAsWell) {
  options_.transfers.stall = std::chrono::milliseconds(200);
  Restart();
  grpc::ClientContext context;
  v1::Blob blob;
  const auto writer = artifacts_->UploadBlob(&context, &blob);

  EXPECT_EQ(ReasonOf(runtime::FromGrpc(writer->Finish())), "UPLOAD_STALLED");
}

// A byte now and then is no progress: each wait is short, and their sum is not.
TEST_F(TransfersTest, AnUploadThatCrawlsIsEnded) {
  options_.transfers.stall = std::chrono::milliseconds(300);
  Restart();
  const auto upload = Begin(content_);
  std::uint64_t sent = 0;
  while (sent < 60'000 && upload->Send(content_.substr(sent, 1))) {
    ++sent;
    GetBlob(content_);
  }

  EXPECT_LT(sent, 60'000u);
  EXPECT_EQ(ReasonOf(upload->Finish()), "UPLOAD_STALLED");
}

TEST_F(TransfersTest, ClientsThatOpenUploadsLeaveRoomForAgents) {
  options_.transfers.uploads = 3;
  options_.transfers.client_uploads = 2;
  Restart();
  ASSERT_TRUE(Create(SmallSpec()).ok());
  std::vector<std::unique_ptr<OpenUpload>> open;
  for (const std::string content : {"first", "second"}) {
    open.push_back(Begin(content));
    open.back()->Send(content.substr(0, 2));
    Await(content, 2);
  }

  const absl::Status refused = Upload("third");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_UPLOADS");
  EXPECT_EQ(runtime::RetryDelayOf(refused), std::chrono::seconds(5));
  EXPECT_TRUE(UploadArtifact(Artifact("weights")).ok());

  open.pop_back();
  EXPECT_TRUE(Eventually([&] { return Upload("third").ok(); }));
}

TEST_F(TransfersTest, DownloadsAreBoundedAndOnesThatNobodyReadsAreCutOff) {
  options_.transfers.downloads = 2;
  options_.transfers.stall = std::chrono::seconds(2);
  Restart();
  const std::string large(32u << 20, 'x');  // more than a connection takes unread
  ASSERT_TRUE(Upload(large).ok());
  struct Unread {
    grpc::ClientContext context{};
    std::unique_ptr<grpc::ClientReader<v1::BlobChunk>> reader{};
  };
  v1::DownloadBlobRequest request;
  request.set_sha256(runtime::Sha256Of(large));
  std::vector<Unread> unread(2);
  for (Unread& one : unread) {
    one.reader = artifacts_->DownloadBlob(&one.context, request);
    v1::BlobChunk chunk;
    ASSERT_TRUE(one.reader->Read(&chunk));
  }

  const absl::Status refused = Download(large).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_DOWNLOADS");
  EXPECT_EQ(runtime::RetryDelayOf(refused), std::chrono::seconds(5));

  EXPECT_TRUE(Eventually([&] { return Download(large).ok(); }));
  for (Unread& one : unread) {
    v1::BlobChunk chunk;
    while (one.reader->Read(&chunk)) {
    }
    EXPECT_EQ(one.reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

// ---- Files of jobs

TEST_F(TransfersTest, AnAgentsUploadGoesOnWhereItBroke) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  agent::v1::UploadArtifactRequest half = Artifact(content_);
  half.set_data(content_.substr(0, 70'000));
  EXPECT_TRUE(absl::IsInvalidArgument(UploadArtifact(half)));
  EXPECT_EQ(GetBlob(content_).received_bytes(), 70'000u);

  EXPECT_TRUE(absl::IsOutOfRange(UploadArtifact(Artifact(content_, 70'001))));
  ASSERT_TRUE(UploadArtifact(Artifact(content_, 70'000)).ok());
  EXPECT_TRUE(UploadArtifact(Artifact(content_, content_.size())).ok());  // it is there already

  EXPECT_EQ(*Download(content_), content_);
}

TEST_F(TransfersTest, AnAgentsFileWithAnotherHashIsRefused) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  agent::v1::UploadArtifactRequest wrong = Artifact(content_);
  wrong.set_data(std::string(content_.size(), 'x'));

  const absl::Status status = UploadArtifact(wrong);

  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(ReasonOf(status), "WRONG_CONTENT_HASH");
  EXPECT_EQ(GetBlob(content_).received_bytes(), 0u);
}

TEST_F(TransfersTest, OfAWorkerThatIsNotInTheGroupNothingIsTaken) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  agent::v1::UploadArtifactRequest stale = Artifact(content_);
  stale.set_worker_id(4711);
  stale.set_data(content_.substr(0, 70'000));

  const absl::Status status = UploadArtifact(stale);

  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(GetBlob(content_).received_bytes(), 0u);
}

TEST_F(TransfersTest, FilesOfJobsAreReadByTheirNamesFromAnOffset) {
  ASSERT_TRUE(Upload("weights").ok());
  ASSERT_TRUE(Upload("checkpoint").ok());
  Stop();
  job::JobRecord over;
  over.id = JobId{7};
  over.name = "over-7";
  over.uid = "uid";
  over.state = job::JobState::kSucceeded;
  over.end_time = over.update_time = over.create_time = runtime::WallNow();
  over.result.emplace().artifacts = {
      {.path = "model.pt", .size_bytes = 7, .sha256 = runtime::Sha256Of("weights")}};
  over.checkpoint = {.sha256 = runtime::Sha256Of("checkpoint"), .size_bytes = 10, .rounds = 3};
  {
    const auto store = store::Store::Open(StateFolder() + "/coordinator.db");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write({.jobs = {over}}).ok());
  }
  Start();

  EXPECT_EQ(*DownloadArtifact("over-7", "model.pt"), "weights");
  EXPECT_EQ(*DownloadArtifact("over-7", "model.pt", 3), "ghts");
  EXPECT_EQ(*DownloadArtifact("over-7", "checkpoint.safetensors", 5), "point");
  EXPECT_TRUE(absl::IsOutOfRange(DownloadArtifact("over-7", "model.pt", 8).status()));
  EXPECT_TRUE(absl::IsNotFound(DownloadArtifact("over-7", "other").status()));
  EXPECT_EQ(ReasonOf(DownloadArtifact("none-8", "model.pt").status()), "JOB_NOT_FOUND");
  std::filesystem::remove(BlobPath(runtime::Sha256Of("weights")));
  EXPECT_EQ(ReasonOf(DownloadArtifact("over-7", "model.pt").status()), "BLOB_NOT_FOUND");
}

TEST_F(TransfersTest, ASnapshotIsThereAsSoonAsItHasComeAndAfterARestart) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::string path = "snapshots/1.000.safetensors";
  agent::v1::UploadArtifactRequest snapshot = Artifact(content_);
  snapshot.set_path(path);
  ASSERT_TRUE(UploadArtifact(snapshot).ok());
  snapshot = Artifact("of another attempt");
  snapshot.set_path(path);
  ASSERT_TRUE(UploadArtifact(snapshot).ok());
  Restart();

  const auto job = Get("small-1");

  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->snapshots_size(), 1);
  EXPECT_EQ(job->snapshots(0).path(), path);
  EXPECT_EQ(job->snapshots(0).size_bytes(), 18u);
  EXPECT_EQ(job->snapshots(0).sha256(), runtime::Sha256Of("of another attempt"));
  EXPECT_EQ(*DownloadArtifact("small-1", path), "of another attempt");
}

// ---- What is swept

TEST_F(TransfersTest, ABlobThatNobodyNamesForADayIsSweptAndANamedOneStays) {
  options_.upkeep = {.first = Duration::zero(), .sweep = std::chrono::milliseconds(10)};
  v1::JobSpec spec = SmallSpec();
  spec.mutable_model()->set_torchscript("sha256:" + runtime::Sha256Of("model"));
  for (const std::string content : {"model", "nobody's", "young"})
    ASSERT_TRUE(Upload(content).ok());
  ASSERT_TRUE(Create(spec).ok());
  Restart();
  for (const std::string content : {"model", "nobody's"}) {
    const timespec long_ago[] = {{.tv_sec = 1'000'000, .tv_nsec = 0},
                                 {.tv_sec = 1'000'000, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, BlobPath(runtime::Sha256Of(content)).c_str(), long_ago, 0), 0);
  }

  EXPECT_TRUE(Eventually(
      [&] { return !std::filesystem::exists(BlobPath(runtime::Sha256Of("nobody's"))); }));

  EXPECT_TRUE(std::filesystem::exists(BlobPath(runtime::Sha256Of("model"))));
  EXPECT_TRUE(std::filesystem::exists(BlobPath(runtime::Sha256Of("young"))));
}

}  // namespace
}  // namespace tactus::service
