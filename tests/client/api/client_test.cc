#include "client/api/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "runtime/sha256.h"
#include "runtime/status.h"
#include "tests/client/api/fake_server.h"
#include "tests/support/temporary_folder.h"

namespace tactus::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

grpc::Status Unavailable() { return {grpc::StatusCode::UNAVAILABLE, "going down"}; }

v1::JobEvent StateEvent(v1::JobState state, const std::string& token) {
  v1::JobEvent event;
  event.mutable_job()->set_state(state);
  event.set_resume_token(token);
  return event;
}

v1::LogEntry LogLine(const std::string& text, const std::string& token) {
  v1::LogEntry entry;
  entry.set_text(text);
  entry.set_resume_token(token);
  return entry;
}

class ClientTest : public ::testing::Test {
 protected:
  static ClientOptions Quick(const std::string& server) {
    return {.server = server,
            .backoff = {.initial = Seconds(0.001), .max = Seconds(0.002)},
            .stream_lost_max = Seconds(30)};
  }

  Client::Write Append() {
    return [this](std::string_view data) {
      written_ += data;
      return absl::OkStatus();
    };
  }

  absl::Status Watch() {
    v1::WatchJobRequest request;
    request.set_name("demo-1");
    return client_.WatchJob(request, [this](const v1::JobEvent& event) {
      states_.push_back(event.job().state());
      return true;
    });
  }

  absl::Status Follow(Client& client) {
    v1::StreamLogsRequest request;
    request.set_follow(true);
    return client.StreamLogs(request, [this](const v1::LogEntry& entry) {
      written_ += entry.text();
      return true;
    });
  }

  FakeServer server_;
  Client client_{Quick(server_.address())};
  std::string written_;
  std::vector<v1::JobState> states_;
};

TEST_F(ClientTest, ARepeatedCreateHasTheSameRequestId) {
  server_.create_job = [](std::size_t i) { return i < 2 ? Unavailable() : grpc::Status::OK; };

  const auto job = client_.CreateJob({});

  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_THAT(server_.created, SizeIs(3));
  EXPECT_THAT(server_.created[0].request_id(), SizeIs(36));
  EXPECT_EQ(server_.created[2].request_id(), server_.created[0].request_id());
}

TEST_F(ClientTest, EachCreateHasItsOwnRequestIdUnlessItWasGiven) {
  v1::CreateJobRequest given;
  given.set_request_id("mine");

  EXPECT_TRUE(client_.CreateJob({}).ok());
  EXPECT_TRUE(client_.CreateJob({}).ok());
  EXPECT_TRUE(client_.CreateJob(given).ok());

  EXPECT_NE(server_.created[0].request_id(), server_.created[1].request_id());
  EXPECT_EQ(server_.created[2].request_id(), "mine");
}

TEST_F(ClientTest, ACallThatWaitsEndsWhenItIsCancelled) {
  Cancellation cancellation;
  std::promise<void> release;
  server_.create_job = [&, released = release.get_future().share()](std::size_t) {
    cancellation.Cancel();
    released.wait();
    return grpc::Status::OK;
  };
  client_.EndCallsWith(&cancellation);

  EXPECT_TRUE(absl::IsCancelled(client_.CreateJob({}).status()));
  EXPECT_TRUE(absl::IsCancelled(client_.GetJob("demo-1").status()));  // and all later ones

  release.set_value();
  client_.EndCallsWith(nullptr);
}

TEST_F(ClientTest, OnlyUnavailableIsRepeatedAndNotForEver) {
  server_.create_job = [](std::size_t) { return Unavailable(); };
  EXPECT_TRUE(absl::IsUnavailable(client_.CreateJob({}).status()));
  EXPECT_THAT(server_.created, SizeIs(4));

  server_.created.clear();
  server_.create_job = [](std::size_t) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(client_.CreateJob({}).status()));
  EXPECT_THAT(server_.created, SizeIs(1));
}

TEST_F(ClientTest, RepetitionsHaveABudget) {
  ClientOptions options = Quick(server_.address());
  options.retry_budget = 5;
  Client client(options);
  server_.create_job = [](std::size_t) { return Unavailable(); };

  for (int i = 0; i < 10; ++i) EXPECT_FALSE(client.CreateJob({}).ok());

  EXPECT_THAT(server_.created, SizeIs(10 + 5));
}

TEST_F(ClientTest, AnUpdateUnderAnEtagIsNotRepeated) {
  server_.update_job = [](std::size_t) { return Unavailable(); };
  v1::UpdateJobRequest request;
  request.set_etag("e");

  EXPECT_FALSE(client_.UpdateJob(request).ok());

  EXPECT_THAT(server_.updated, SizeIs(1));
}

TEST_F(ClientTest, ADeleteThatGotThroughUnheardIsDone) {
  server_.delete_job = [](std::size_t i) {
    return i == 0 ? Unavailable() : grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
  };

  EXPECT_TRUE(client_.DeleteJob("demo-1").ok());
  EXPECT_TRUE(absl::IsNotFound(client_.DeleteJob("demo-1")));
}

TEST_F(ClientTest, ErrorsCarryTheirReasonAndFields) {
  server_.create_job = [](std::size_t) {
    return runtime::ToGrpc(runtime::WithReason(runtime::InvalidFields({{"name", "is required"}}),
                                               {.reason = "INVALID_SPEC"}));
  };

  const absl::Status status = client_.CreateJob({}).status();

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(runtime::ReasonOf(status).reason, "INVALID_SPEC");
  ASSERT_THAT(runtime::FieldViolations(status), SizeIs(1));
  EXPECT_EQ(runtime::FieldViolations(status)[0].field, "name");
}

TEST_F(ClientTest, NobodyThereIsSaidWithTheAddress) {
  server_.Shutdown();

  const absl::Status status = client_.GetJob("demo-1").status();

  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no coordinator answers at " + server_.address()));
}

TEST_F(ClientTest, AWatchGoesOnBehindTheLastEvent) {
  server_.watches = {
      {StateEvent(v1::JOB_STATE_QUEUED, "1"), StateEvent(v1::JOB_STATE_RUNNING, "2")},
      {StateEvent(v1::JOB_STATE_SUCCEEDED, "3")}};
  server_.watch_end = [](std::size_t i) { return i == 0 ? Unavailable() : grpc::Status::OK; };

  EXPECT_TRUE(Watch().ok());

  EXPECT_THAT(states_,
              ElementsAre(v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  ASSERT_THAT(server_.watched, SizeIs(2));
  EXPECT_EQ(server_.watched[0].resume_token(), "");
  EXPECT_EQ(server_.watched[1].resume_token(), "2");
}

TEST_F(ClientTest, AWatchBeginsAgainWhenItsTokenIsTooOld) {
  server_.watches = {
      {StateEvent(v1::JOB_STATE_RUNNING, "1")},
      {},
      {StateEvent(v1::JOB_STATE_RUNNING, "9"), StateEvent(v1::JOB_STATE_FAILED, "10")}};
  server_.watch_end = [](std::size_t i) {
    return i == 0   ? Unavailable()
           : i == 1 ? grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "too old")
                    : grpc::Status::OK;
  };

  EXPECT_TRUE(Watch().ok());

  EXPECT_EQ(states_.back(), v1::JOB_STATE_FAILED);
  ASSERT_THAT(server_.watched, SizeIs(3));
  EXPECT_EQ(server_.watched[2].resume_token(), "");
}

TEST_F(ClientTest, AWatchThatWasNeverHeardIsNotRepeated) {
  server_.watch_end = [](std::size_t) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
  };
  EXPECT_TRUE(absl::IsNotFound(Watch()));

  server_.watch_end = [](std::size_t) { return Unavailable(); };
  EXPECT_TRUE(absl::IsUnavailable(Watch()));
  EXPECT_THAT(server_.watched, SizeIs(2));
}

TEST_F(ClientTest, TheCallerEndsAStream) {
  server_.watches = {
      {StateEvent(v1::JOB_STATE_QUEUED, "1"), StateEvent(v1::JOB_STATE_RUNNING, "2")}};
  v1::WatchJobRequest request;

  const absl::Status status = client_.WatchJob(request, [](const v1::JobEvent&) { return false; });

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(server_.watched, SizeIs(1));
}

TEST_F(ClientTest, LogsGoOnWithoutTheTail) {
  server_.logs = {{LogLine("a\n", "t1")}, {LogLine("b\n", "t2")}};
  server_.logs_end = [](std::size_t i) { return i == 0 ? Unavailable() : grpc::Status::OK; };
  v1::StreamLogsRequest request;
  request.set_tail_lines(5);

  const absl::Status status = client_.StreamLogs(request, [this](const v1::LogEntry& entry) {
    written_ += entry.text();
    return true;
  });

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(written_, "a\nb\n");
  EXPECT_EQ(server_.logged[0].tail_lines(), 5u);
  EXPECT_EQ(server_.logged[1].tail_lines(), 0u);
  EXPECT_EQ(server_.logged[1].resume_token(), "t1");
}

TEST_F(ClientTest, LogsThatWereOpenAndSilentAreOpenedAgain) {
  server_.logs = {{}, {}, {LogLine("a\n", "t1")}};
  server_.logs_say_open = true;
  server_.logs_end = [](std::size_t i) { return i < 2 ? Unavailable() : grpc::Status::OK; };

  EXPECT_TRUE(Follow(client_).ok());

  EXPECT_EQ(written_, "a\n");
  EXPECT_THAT(server_.logged, SizeIs(3));
}

TEST_F(ClientTest, TheTimeOfALostStreamCountsFromItsEnd) {
  ClientOptions options = Quick(server_.address());
  options.stream_lost_max = Seconds(0.2);
  Client client(options);
  server_.logs = {{LogLine("a\n", "t1")}, {LogLine("b\n", "t2")}};
  server_.logs_last = Seconds(0.3);
  server_.logs_end = [](std::size_t i) { return i == 0 ? Unavailable() : grpc::Status::OK; };

  const absl::Status status = Follow(client);

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(written_, "a\nb\n");
}

TEST_F(ClientTest, AStreamThatStaysLostIsGivenUp) {
  ClientOptions options = Quick(server_.address());
  options.stream_lost_max = Seconds(0.02);
  Client client(options);
  server_.logs = {{LogLine("a\n", "t1")}};
  server_.logs_end = [](std::size_t) { return Unavailable(); };

  EXPECT_TRUE(absl::IsUnavailable(Follow(client)));
}

TEST_F(ClientTest, AStreamAtItsLongestIsOpenedAgain) {
  ClientOptions options = Quick(server_.address());
  options.stream_max = Seconds(0.5);
  Client client(options);
  server_.logs = {{}, {LogLine("a\n", "t1")}};
  server_.logs_say_open = true;
  server_.logs_stay_open = 1;

  const absl::Status status = Follow(client);

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(written_, "a\n");
}

TEST_F(ClientTest, AStreamThatWasNeverOpenIsGivenUpAtItsLongest) {
  ClientOptions options = Quick(server_.address());
  options.stream_max = Seconds(0.5);
  Client client(options);
  server_.logs_stay_open = 1;

  const absl::Status status = Follow(client);

  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("nothing came from " + server_.address() + " within 0.5 s"));
}

TEST_F(ClientTest, AnotherThreadEndsAStream) {
  server_.logs = {{LogLine("a\n", "t1")}};
  server_.logs_stay_open = 1;
  Cancellation cancellation;
  std::thread other;

  const absl::Status status = client_.StreamLogs(
      {},
      [&](const v1::LogEntry&) {
        other = std::thread([&] { cancellation.Cancel(); });
        return true;
      },
      &cancellation);
  other.join();

  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(client_.StreamLogs({}, nullptr, &cancellation)));
}

TEST_F(ClientTest, ADownloadGoesOnWhereItBrokeOff) {
  server_.content = "0123456789";
  server_.download_bytes = {3, 4};
  server_.download_end = [](std::size_t i) { return i < 2 ? Unavailable() : grpc::Status::OK; };

  const absl::Status status = client_.DownloadArtifact(
      {}, {.size_bytes = 10, .sha256 = runtime::Sha256Of("0123456789")}, Append());

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(written_, "0123456789");
  EXPECT_THAT(server_.download_offsets, ElementsAre(0, 3, 7));
}

TEST_F(ClientTest, ADownloadTakesAsLongAsItNeedsWhileItMoves) {
  ClientOptions options = Quick(server_.address());
  options.download_call_max = Seconds(0.5);
  options.attempts_max = 1;
  Client client(options);
  server_.content = "0123456789";
  server_.download_bytes = {3, 4};
  server_.downloads_stay_open = 2;

  const absl::Status status = client.DownloadArtifact(
      {}, {.size_bytes = 10, .sha256 = runtime::Sha256Of("0123456789")}, Append());

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(server_.download_offsets, ElementsAre(0, 3, 7));
}

TEST_F(ClientTest, ADownloadThatStandsStillEnds) {
  ClientOptions options = Quick(server_.address());
  options.download_call_max = Seconds(0.5);
  Client client(options);
  server_.content = "0123456789";
  server_.download_bytes = {3, 0, 7};
  server_.downloads_stay_open = 3;

  const absl::Status status = client.DownloadArtifact({}, {.size_bytes = 10}, Append());

  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("nothing came from " + server_.address() + " within 0.5 s"));
  EXPECT_THAT(server_.download_offsets, ElementsAre(0, 3));
}

TEST_F(ClientTest, TransfersAreWithinTheBudgetOfRepetitions) {
  ClientOptions options = Quick(server_.address());
  options.retry_budget = 4;
  Client client(options);
  server_.content = "0123456789";
  server_.download_end = [](std::size_t) { return Unavailable(); };
  server_.upload_end = [](std::size_t) { return Unavailable(); };
  server_.upload_bytes_max = 0;
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/model.pt") << "abc";

  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(client.DownloadArtifact({}, {.size_bytes = 10}, Append())));
  }
  EXPECT_TRUE(absl::IsUnavailable(client.UploadFile(folder.path() + "/model.pt").status()));

  EXPECT_THAT(server_.download_offsets, SizeIs(3 + 4));
  EXPECT_EQ(server_.uploads, 1u);
}

TEST_F(ClientTest, ADownloadThatIsNotWhatWasAnnouncedIsRefused) {
  server_.content = "0123456789";

  EXPECT_TRUE(absl::IsDataLoss(client_.DownloadArtifact({}, {.size_bytes = 11}, Append())));
  const Content other = {.size_bytes = 10, .sha256 = runtime::Sha256Of("other")};
  EXPECT_TRUE(absl::IsDataLoss(client_.DownloadArtifact({}, other, Append())));
  EXPECT_TRUE(absl::IsDataLoss(client_.DownloadBlob(runtime::Sha256Of("other"), Append())));
  EXPECT_TRUE(client_.DownloadBlob(runtime::Sha256Of("0123456789"), Append()).ok());
}

TEST_F(ClientTest, AnErrorOfTheCallersEndsADownload) {
  server_.content = "0123456789";
  const auto full = [](std::string_view) { return absl::ResourceExhaustedError("full"); };

  const absl::Status status = client_.DownloadArtifact({}, {.size_bytes = 10}, full);

  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

TEST_F(ClientTest, AnUploadSendsOnlyWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.pt";
  const std::string text = std::string(3 << 20, 'a') + "end";
  std::ofstream(path) << text;
  server_.upload_end = [](std::size_t i) { return i == 0 ? Unavailable() : grpc::Status::OK; };
  server_.upload_bytes_max = 2 << 20;

  const auto blob = client_.UploadFile(path);

  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ(blob->sha256(), runtime::Sha256Of(text));
  EXPECT_EQ(server_.uploaded, text);
  EXPECT_THAT(server_.upload_offsets, ElementsAre(0, 2 << 20));
}

TEST_F(ClientTest, WhatIsThereIsNotSentAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.pt";
  std::ofstream(path) << "abc";
  server_.blob.set_complete(true);

  EXPECT_TRUE(client_.UploadFile(path).ok());

  EXPECT_THAT(server_.upload_offsets, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(client_.UploadFile(folder.path() + "/none").status()));
}

TEST_F(ClientTest, ABackupIsHandedOverInOrder) {
  server_.content = "database";

  EXPECT_TRUE(client_.Backup(Append()).ok());

  EXPECT_EQ(written_, "database");
  EXPECT_EQ(client_.CheckIntegrity()->jobs(), 3u);
}

TEST(ClientOptionsTest, WrongValuesAreNamed) {
  EXPECT_TRUE(ClientOptions{}.Validate().ok());
  EXPECT_THAT(std::string(ClientOptions{.server = "host"}.Validate().message()),
              HasSubstr("server: found 'host'"));
  EXPECT_FALSE(ClientOptions{.request_timeout = Duration::zero()}.Validate().ok());
  EXPECT_FALSE(ClientOptions{.attempts_max = 0}.Validate().ok());
  EXPECT_FALSE(ClientOptions{.retry_budget = -1}.Validate().ok());
  EXPECT_FALSE(ClientOptions{.stream_max = Duration::zero()}.Validate().ok());
  EXPECT_FALSE(ClientOptions{.download_call_max = Duration::zero()}.Validate().ok());
}

}  // namespace
}  // namespace tactus::api
