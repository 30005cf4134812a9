#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "client/api/client.h"
#include "client/cli/answer.h"
#include "client/local/download.h"
#include "client/observe/event_loop.h"
#include "client/observe/follow.h"
#include "client/observe/live_jobs.h"
#include "client/render/error_lines.h"
#include "client/render/exit_code.h"
#include "runtime/status.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/sample_job.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExitCodeTest, CodesOfCallsAreThoseOfTheHelp) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kDenied);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kTimedOut);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kGeneric);
  EXPECT_EQ(ExitCodeOf(OfLocalFile(absl::NotFoundError(""))), ExitCode::kFile);
  EXPECT_EQ(ExitCodeOf(OfLocalFile(absl::OkStatus())), ExitCode::kOk);
  const auto unavailable = [](const std::string& reason) {
    return runtime::WithReason(absl::UnavailableError(""), {.reason = reason});
  };
  EXPECT_EQ(ExitCodeOf(unavailable("STORE_UNAVAILABLE")), ExitCode::kGeneric);
  EXPECT_EQ(ExitCodeOf(unavailable("COORDINATOR_STOPPING")), ExitCode::kUnavailable);
}

class CallsTest : public ::testing::Test {
 protected:
  Followed FollowJob() {
    return Follow(client_, loop_, "demo-1",
                  {.event = [this](const v1::JobEvent& event) { events_.push_back(event); },
                   .say = [this](const std::string& text) { said_.push_back(text); }});
  }

  FakeCoordinator coordinator_;
  api::Client client_{{.server = coordinator_.address()}};
  EventLoop loop_{{SIGUSR1}};
  std::vector<v1::JobEvent> events_;
  std::vector<std::string> said_;
};

TEST_F(CallsTest, DecisionsAreFetchedPageByPageUpToTheLimit) {
  for (std::uint64_t version = 1; version <= 5; ++version) {
    coordinator_.decisions.add_decisions()->set_plan_version(version);
  }

  const auto all = client_.ListAllDecisions("demo-1", 100);
  const auto some = client_.ListAllDecisions("demo-1", 3);

  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->decisions_size(), 5);
  EXPECT_EQ(all->decisions(4).plan_version(), 5u);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->decisions_size(), 3);
}

TEST_F(CallsTest, LiveJobsAreThoseBeforeTheQueueThenABoundedQueueAndEachOnce) {
  coordinator_.jobs = 3;  // job-0 to job-2, which are not queued
  for (int i = 0; i < static_cast<int>(kQueuedJobsMax) + 1; ++i) {
    v1::Job& job = coordinator_.queue.emplace_back();
    job.set_name(i == 0 ? "job-1" : "queued-" + std::to_string(i));
    job.set_state(v1::JOB_STATE_QUEUED);
  }

  const auto live = FetchLiveJobs(client_);

  ASSERT_TRUE(live.ok()) << live.status();
  ASSERT_EQ(live->jobs.jobs_size(), 3 + static_cast<int>(kQueuedJobsMax) - 1);
  EXPECT_EQ(live->jobs.jobs(1).name(), "job-1");  // it started while the lists were read
  EXPECT_EQ(live->jobs.jobs(3).name(), "queued-1");
  EXPECT_TRUE(live->more_queued);
}

// What a trace of `range` says, beside the trace. The progress counts a round that is not yet on
// record.
class TraceCallTest : public CallsTest {
 protected:
  std::string Say(const std::string& range, ExitCode code) {
    coordinator_.job.mutable_progress()->set_rounds(3);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const std::vector<std::string> words = {"trace", "demo-1",   "--rounds",
                                            range,   "--server", coordinator_.address()};
    EXPECT_EQ(Answer(words, {}, Screen({})), code);
    ::testing::internal::GetCapturedStdout();
    return ::testing::internal::GetCapturedStderr();
  }

  void Record(int workers) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      v1::Round& round = *coordinator_.rounds.add_rounds();
      round.set_round(i);
      round.mutable_worker_compute_seconds()->Resize(workers, 0.5);
    }
  }
};

TEST_F(TraceCallTest, WithoutAnEndTheLastRoundOnRecordIsIt) {
  Record(0);

  EXPECT_THAT(Say(":", ExitCode::kOk), Not(HasSubstr("are on record")));
  EXPECT_THAT(Say(":2", ExitCode::kOk), HasSubstr("rounds 0 to 1 of rounds 0 to 2 are on"));
}

TEST_F(TraceCallTest, TooManyRoundsOfTooManyWorkersAreRefusedWithWhatFits) {
  Record(600'000);

  EXPECT_THAT(Say(":", ExitCode::kUsage),
              AllOf(HasSubstr("at most 1,000,000 rounds times workers"), HasSubstr("; 0:0 fits")));
}

TEST_F(CallsTest, ViolationsAreALineAField) {
  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return runtime::ToGrpc(runtime::InvalidFields(
        {{"stop.epochs", "found 0, allowed is 1 or more"}, {"name", "is required"}}));
  };

  const absl::Status status = client_.CreateJob({}).status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_THAT(ErrorLines(status, "job.yaml"),
              ElementsAre("job.yaml: stop.epochs: found 0, allowed is 1 or more",
                          "job.yaml: name: is required"));
}

TEST_F(CallsTest, ErrorsWithoutDetailsAreTheirMessage) {
  coordinator_.create_job = [](const v1::CreateJobRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "it\x1b[1m exists");
  };

  const absl::Status status = client_.CreateJob({}).status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kConflict);
  EXPECT_THAT(ErrorLines(status, ""), ElementsAre("it [1m exists"));
}

TEST_F(CallsTest, NobodyThereIsSaidWithWhatToDo) {
  coordinator_.Shutdown();

  const absl::Status status = client_.GetJob("demo-1").status();

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(coordinator_.address()));
  EXPECT_THAT(ErrorLines(status, ""), ElementsAre(HasSubstr("--server")));
}

TEST_F(CallsTest, ListsAreJoinedFromPages) {
  coordinator_.jobs = 20;

  EXPECT_EQ(client_.ListAllJobs({}, 1000)->jobs_size(), 20);
  EXPECT_EQ(client_.ListAllJobs({}, 10)->jobs_size(), 10);
  EXPECT_EQ(client_.ListAllJobs({}, 1000)->jobs(19).name(), "job-19");
}

TEST_F(CallsTest, FollowingEndsWithTheJob) {
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

TEST_F(CallsTest, ALostStreamIsOpenedAgain) {
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

TEST_F(CallsTest, ALostStreamGoesOnWhereItBrokeOff) {
  v1::JobEvent first = StateEvent(v1::JOB_STATE_RUNNING, "");
  first.set_resume_token("7");
  coordinator_.watches = {{first}, {}, {StateEvent(v1::JOB_STATE_SUCCEEDED, "x")}};
  coordinator_.watch_end = [](int i) {
    return i == 0   ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down")
           : i == 1 ? grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "another coordinator")
                    : grpc::Status::OK;
  };

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kOver);
  EXPECT_THAT(coordinator_.watch_tokens, ElementsAre("", "7", ""));
}

TEST_F(CallsTest, AJobThatDoesNotExistIsNotWaitedFor) {
  coordinator_.watch_end = [](int) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
  };

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kLost);
  EXPECT_EQ(ExitCodeOf(followed.status), ExitCode::kNotFound);
}

TEST_F(CallsTest, ACoordinatorThatNeverAnsweredIsNotWaitedFor) {
  coordinator_.Shutdown();

  const Followed followed = FollowJob();

  EXPECT_EQ(followed.end, Followed::End::kLost);
  EXPECT_EQ(ExitCodeOf(followed.status), ExitCode::kUnavailable);
  EXPECT_TRUE(said_.empty());
}

TEST_F(CallsTest, ASignalEndsTheFollowingAndTheStream) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_RUNNING, "")}};
  const FollowHandlers handlers = {.event = [](const v1::JobEvent&) { raise(SIGUSR1); },
                                   .say = [](const std::string&) {}};

  const Followed followed = Follow(client_, loop_, "demo-1", handlers);

  EXPECT_EQ(followed.end, Followed::End::kInterrupted);
  EXPECT_EQ(followed.job.state(), v1::JOB_STATE_RUNNING);
  const auto cancelled = [this] { return coordinator_.watch_cancelled.load(); };
  EXPECT_EQ(loop_.RunUntil(cancelled, Seconds(30)), EventLoop::Outcome::kDone);
}

TEST_F(CallsTest, TheCallerCanStopTheFollowing) {
  coordinator_.watches = {{StateEvent(v1::JOB_STATE_RUNNING, "")}};
  bool seen = false;
  const FollowHandlers handlers = {.event = [&](const v1::JobEvent&) { seen = true; },
                                   .say = [](const std::string&) {},
                                   .stop = [&] { return seen; }};

  EXPECT_EQ(Follow(client_, loop_, "demo-1", handlers).end, Followed::End::kStopped);
}

TEST_F(CallsTest, ResultsArriveWhole) {
  const TemporaryFolder folder;
  v1::Job job = FinishedJob();
  job.mutable_result()->mutable_artifacts(0)->set_path("sub/model.pt");
  job.mutable_result()->mutable_artifacts(0)->set_size_bytes(6);
  coordinator_.chunks = {"abc", "def"};

  const auto paths = DownloadResult(client_, job, folder.path() + "/new");

  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(*paths, ElementsAre(folder.path() + "/new/sub/model.pt"));
  std::ifstream in(paths->at(0));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "abcdef");
}

TEST_F(CallsTest, SnapshotsAreDownloadedWithoutAResultAndOnceWithIt) {
  const TemporaryFolder folder;
  coordinator_.chunks = {"abc"};
  v1::Job job = StateEvent(v1::JOB_STATE_FAILED, "signal 9").job();
  for (const char* path : {"snapshots/0.000.safetensors", "snapshots/1.004.safetensors"}) {
    v1::Artifact* snapshot = job.add_snapshots();
    snapshot->set_path(path);
    snapshot->set_size_bytes(3);
  }

  const auto paths = DownloadResult(client_, job, folder.path() + "/failed");

  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(*paths, ElementsAre(folder.path() + "/failed/snapshots/0.000.safetensors",
                                  folder.path() + "/failed/snapshots/1.004.safetensors"));
  *job.mutable_result()->add_artifacts() = job.snapshots(1);

  const auto with_result = DownloadResult(client_, job, folder.path() + "/new");

  ASSERT_TRUE(with_result.ok()) << with_result.status();
  EXPECT_THAT(*with_result, ElementsAre(folder.path() + "/new/snapshots/1.004.safetensors",
                                        folder.path() + "/new/snapshots/0.000.safetensors"));
}

TEST_F(CallsTest, ShortFilesAreRefusedAndLeaveNothing) {
  const TemporaryFolder folder;
  coordinator_.chunks = {"abc"};

  const auto paths = DownloadResult(client_, FinishedJob(), folder.path());

  EXPECT_EQ(paths.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(CallsTest, FilesCannotLeaveTheFolder) {
  const TemporaryFolder folder;
  for (const char* path : {"../x", "/etc/x", "", "a/../../x", "a/"}) {
    v1::Job job = FinishedJob();
    job.mutable_result()->mutable_artifacts(0)->set_path(path);

    const auto paths = DownloadResult(client_, job, folder.path() + "/d");

    EXPECT_EQ(paths.status().code(), absl::StatusCode::kDataLoss) << path;
  }
}

TEST_F(CallsTest, AJobWithoutResultHasNothingToDownload) {
  const auto paths = DownloadResult(client_, StateEvent(v1::JOB_STATE_RUNNING, "").job(), "/tmp");

  EXPECT_EQ(ExitCodeOf(paths.status()), ExitCode::kConflict);
  EXPECT_EQ(paths.status().message(),
            "job demo-1 has neither a result nor snapshots: it is running");
}

}  // namespace
}  // namespace tactus::client
