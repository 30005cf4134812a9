#include "client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "client/download.h"
#include "client/event_loop.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "runtime/status.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/sample_job.h"
#include "tests/client/temporary_folder.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ServerAddressTest, FlagWinsOverEnvironmentOverFileOverDefault) {
  const TemporaryFolder folder;
  const std::string config = folder.path() + "/config.yaml";
  std::ofstream(config) << "server: file:3\n";

  EXPECT_EQ(*ServerAddress({"flag:1", "environment:2", config}), "flag:1");
  EXPECT_EQ(*ServerAddress({"", "environment:2", config}), "environment:2");
  EXPECT_EQ(*ServerAddress({"", "", config}), "file:3");
  EXPECT_EQ(*ServerAddress({"", "", folder.path() + "/none"}), kServerDefault);
  EXPECT_EQ(*ServerAddress({"[::1]:7070", "", ""}), "[::1]:7070");
}

TEST(ServerAddressTest, WrongAddressesAreNamedWithTheirSource) {
  const TemporaryFolder folder;
  const std::string config = folder.path() + "/config.yaml";
  std::ofstream(config) << "sever: h:1\n";

  for (const char* address : {"host", "host:", ":5", "host:0", "host:65536", "host:1x"}) {
    EXPECT_THAT(std::string(ServerAddress({address, "", ""}).status().message()),
                HasSubstr(std::string("--server: '") + address + "' is not an address"));
  }
  EXPECT_THAT(std::string(ServerAddress({"", "x", ""}).status().message()),
              HasSubstr("TACTUS_SERVER"));
  EXPECT_THAT(std::string(ServerAddress({"", "", config}).status().message()),
              HasSubstr("sever: unknown key (line 1); allowed: server"));
}

TEST(ExitCodeTest, CodesOfCallsAreThoseOfTheHelp) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kDenied);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kTimedOut);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kGeneric);
}

class ConnectionTest : public ::testing::Test {
 protected:
  Followed FollowJob() {
    return Follow(connection_, loop_, "demo-1",
                  {.event = [this](const v1::JobEvent& event) { events_.push_back(event); },
                   .say = [this](const std::string& text) { said_.push_back(text); }});
  }

  FakeCoordinator coordinator_;
  Connection connection_{{.server = coordinator_.address()}};
  EventLoop loop_{{SIGUSR1}};
  std::vector<v1::JobEvent> events_;
  std::vector<std::string> said_;
};

TEST_F(ConnectionTest, DecisionsAreFetchedPageByPageUpToTheLimit) {
  for (std::uint64_t version = 1; version <= 5; ++version) {
    coordinator_.decisions.add_decisions()->set_plan_version(version);
  }

  const auto all = connection_.ListDecisions("demo-1", 100);
  const auto some = connection_.ListDecisions("demo-1", 3);

  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->decisions_size(), 5);
  EXPECT_EQ(all->decisions(4).plan_version(), 5u);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->decisions_size(), 3);
}

TEST_F(ConnectionTest, ViolationsAreALineAField) {
  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return runtime::ToGrpc(runtime::InvalidFields(
        {{"stop.epochs", "found 0, allowed is 1 or more"}, {"name", "is required"}}));
  };

  const absl::Status status = connection_.CreateJob({}).status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_THAT(ErrorLines(status, "job.yaml"),
              ElementsAre("job.yaml: stop.epochs: found 0, allowed is 1 or more",
                          "job.yaml: name: is required"));
}

TEST_F(ConnectionTest, ErrorsWithoutDetailsAreTheirMessage) {
  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "it\x1b[1m exists");
  };

  const absl::Status status = connection_.CreateJob({}).status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kConflict);
  EXPECT_THAT(ErrorLines(status, ""), ElementsAre("it [1m exists"));
}

TEST_F(ConnectionTest, NobodyThereIsSaidWithWhatToDo) {
  coordinator_.Shutdown();

  const absl::Status status = connection_.GetJob("demo-1").status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--server"));
}

TEST_F(ConnectionTest, ListsAreJoinedFromPages) {
  coordinator_.jobs = 20;

  EXPECT_EQ(connection_.ListJobs(1000)->jobs_size(), 20);
  EXPECT_EQ(connection_.ListJobs(10)->jobs_size(), 10);
  EXPECT_EQ(connection_.ListJobs(1000)->jobs(19).name(), "job-19");
}

TEST_F(ConnectionTest, FollowingEndsWithTheJob) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_RUNNING, ""),
                           ProgressEvent(SampleProgress(UnequalWorkers())),
                           StateEvent(v1::JOB_STATE_SUCCEEDED, "done")}};
  coordinator_.watch_end = [](int) { return grpc::Status::OK; };

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kOver);
  EXPECT_EQ(followed.job.state_reason(), "done");
  EXPECT_EQ(events_.size(), 3u);
  EXPECT_TRUE(said_.empty());
}

TEST_F(ConnectionTest, ALostStreamIsOpenedAgain) {
  coordinator_.watches = {
      {StateEvent(v1::JOB_STATE_RUNNING, "")}, {}, {StateEvent(v1::JOB_STATE_FAILED, "x")}};
  coordinator_.watch_end = [](int i) {
    return i < 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down") : grpc::Status::OK;
  };

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kOver);
  EXPECT_EQ(followed.job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(coordinator_.watches_opened, 3);
  EXPECT_EQ(said_.size(), 1u);
}

TEST_F(ConnectionTest, AJobThatDoesNotExistIsNotWaitedFor) {
  coordinator_.watch_end = [](int) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
  };

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kLost);
  EXPECT_EQ(ExitCodeOf(followed.status), ExitCode::kNotFound);
}

TEST_F(ConnectionTest, ACoordinatorThatNeverAnsweredIsNotWaitedFor) {
  coordinator_.Shutdown();

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kLost);
  EXPECT_EQ(ExitCodeOf(followed.status), ExitCode::kUnavailable);
  EXPECT_TRUE(said_.empty());
}

TEST_F(ConnectionTest, ASignalEndsTheFollowingAndTheStream) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_RUNNING, "")}};
  const FollowHandlers handlers = {.event = [](const v1::JobEvent&) { raise(SIGUSR1); },
                                   .say = [](const std::string&) {}};

  const Followed followed = Follow(connection_, loop_, "demo-1", handlers);

  EXPECT_EQ(followed.end, Followed::End::kInterrupted);
  EXPECT_EQ(followed.job.state(), v1::JOB_STATE_RUNNING);
  const auto cancelled = [this] { return coordinator_.watch_cancelled.load(); };
  EXPECT_EQ(loop_.RunUntil(cancelled, Seconds(30)), EventLoop::Outcome::kDone);
}

TEST_F(ConnectionTest, TheCallerCanStopTheFollowing) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_RUNNING, "")}};
  bool seen = false;
  const FollowHandlers handlers = {.event = [&](const v1::JobEvent&) { seen = true; },
                                   .say = [](const std::string&) {},
                                   .stop = [&] { return seen; }};

  EXPECT_EQ(Follow(connection_, loop_, "demo-1", handlers).end, Followed::End::kStopped);
}

TEST_F(ConnectionTest, ResultsArriveWhole) {
  const TemporaryFolder folder;
  v1::Job job = FinishedJob();
  job.mutable_result()->mutable_artifacts(0)->set_path("sub/model.pt");
  job.mutable_result()->mutable_artifacts(0)->set_size_bytes(6);
  coordinator_.chunks = {"abc", "def"};

  const auto paths = DownloadResult(connection_, job, folder.path() + "/new");

  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(*paths, ElementsAre(folder.path() + "/new/sub/model.pt"));
  std::ifstream in(paths->at(0));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "abcdef");
}

TEST_F(ConnectionTest, ShortFilesAreRefusedAndLeaveNothing) {
  const TemporaryFolder folder;
  coordinator_.chunks = {"abc"};

  const auto paths = DownloadResult(connection_, FinishedJob(), folder.path());

  EXPECT_EQ(paths.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(ConnectionTest, FilesCannotLeaveTheFolder) {
  const TemporaryFolder folder;
  for (const char* path : {"../x", "/etc/x", "", "a/../../x", "a/"}) {
    v1::Job job = FinishedJob();
    job.mutable_result()->mutable_artifacts(0)->set_path(path);

    const auto paths = DownloadResult(connection_, job, folder.path() + "/d");

    EXPECT_EQ(paths.status().code(), absl::StatusCode::kDataLoss) << path;
  }
}

TEST_F(ConnectionTest, AJobWithoutResultHasNothingToDownload) {
  const auto paths =
      DownloadResult(connection_, StateEvent(v1::JOB_STATE_RUNNING, "").job(), "/tmp");

  EXPECT_EQ(ExitCodeOf(paths.status()), ExitCode::kConflict);
  EXPECT_EQ(paths.status().message(), "job demo-1 has no result: it is running");
}

}  // namespace
}  // namespace tactus::client
