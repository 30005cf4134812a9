// What users do with jobs, over real gRPC.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Jobs wait: there is no agent.
class JobsApiTest : public ServerFixture {
 protected:
  absl::StatusOr<v1::Job> Update(const v1::UpdateJobRequest& request) {
    return Call(jobs_, &v1::Jobs::Stub::UpdateJob, request);
  }
  absl::StatusOr<v1::Job> Pause(const std::string& name) {
    v1::PauseJobRequest request;
    request.set_name(name);
    return Call(jobs_, &v1::Jobs::Stub::PauseJob, request);
  }
  absl::StatusOr<v1::Job> Resume(const std::string& name) {
    v1::ResumeJobRequest request;
    request.set_name(name);
    return Call(jobs_, &v1::Jobs::Stub::ResumeJob, request);
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteJobRequest request;
    request.set_name(name);
    return Call(jobs_, &v1::Jobs::Stub::DeleteJob, request).status();
  }
  // The events of a watch until it ends or `most` have come.
  std::vector<v1::JobEvent> Watch(const std::string& token, std::size_t most, absl::Status* end) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name("small-1");
    request.set_resume_token(token);
    const auto reader = jobs_->WatchJob(&context, request);
    std::vector<v1::JobEvent> events;
    v1::JobEvent event;
    while (events.size() < most && reader->Read(&event)) events.push_back(event);
    if (events.size() == most) context.TryCancel();
    const absl::Status status = runtime::FromGrpc(reader->Finish());
    if (end != nullptr) *end = status;
    return events;
  }
  absl::Status Revert(const std::string& name, const std::string& request_id = "") {
    v1::RevertDecisionRequest request;
    request.set_name(name);
    request.set_request_id(request_id);
    return Call(jobs_, &v1::Jobs::Stub::RevertDecision, request).status();
  }
  absl::Status ValueDevices(const std::string& name) {
    v1::GetDeviceValuesRequest request;
    request.set_name(name);
    return Call(jobs_, &v1::Jobs::Stub::GetDeviceValues, request).status();
  }
  static std::string ReasonOf(const absl::Status& status) {
    return runtime::ReasonOf(status).reason;
  }
};

v1::UpdateJobRequest Priority(int priority) {
  v1::UpdateJobRequest request;
  request.set_name("small-1");
  request.mutable_spec()->set_priority(priority);
  request.mutable_update_mask()->add_paths("spec.priority");
  return request;
}

TEST_F(JobsApiTest, OfAJobThatDoesNotTrainNothingIsTakenBackAndNoDeviceIsWorthAnything) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::string name = "projects/default/jobs/small-1/decisions/2-batch";

  for (const absl::Status& status :
       {Revert(name), Revert("small-1/decisions/2-batch"), ValueDevices("small-1")}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonOf(status), "JOB_NOT_TRAINING");
    EXPECT_THAT(std::string(status.message()), HasSubstr("it is queued"));
  }
  ASSERT_TRUE(Cancel("small-1").ok());
  EXPECT_EQ(ReasonOf(Revert(name)), "JOB_OVER");
  EXPECT_EQ(ReasonOf(ValueDevices("small-1")), "JOB_OVER");
  EXPECT_EQ(ReasonOf(Revert("small-7/decisions/2-batch")), "JOB_NOT_FOUND");
}

TEST_F(JobsApiTest, WhatNamesNoDecisionIsRefusedWithItsField) {
  for (const char* name :
       {"", "small-1", "small-1/decisions/", "small-1/decisions/2", "small-1/decisions/2-weather",
        "/decisions/2-batch", "A/decisions/2-batch"}) {
    const absl::Status status = Revert(name);
    EXPECT_EQ(ReasonOf(status), "INVALID_FIELDS") << name;
    ASSERT_EQ(runtime::FieldViolations(status).size(), 1u) << name;
    EXPECT_EQ(runtime::FieldViolations(status)[0].field, "name");
  }
  const absl::Status status = Revert("small-1/decisions/2-batch", "no id!");
  ASSERT_EQ(runtime::FieldViolations(status).size(), 1u) << status;
  EXPECT_EQ(runtime::FieldViolations(status)[0].field, "request_id");
}

TEST_F(JobsApiTest, AnUpdateChangesWhatItsMaskNamesAndTheEtag) {
  const absl::StatusOr<v1::Job> created = Create(SmallSpec());
  ASSERT_TRUE(created.ok()) << created.status();
  v1::UpdateJobRequest request = Priority(7);
  request.mutable_spec()->set_name("other");

  const absl::StatusOr<v1::Job> updated = Update(request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->spec().priority(), 7);
  EXPECT_EQ(updated->spec().name(), "small");
  EXPECT_NE(updated->etag(), created->etag());
  EXPECT_EQ(Get("small-1")->spec().priority(), 7);
}

TEST_F(JobsApiTest, AnUpdateSurvivesARestart) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  v1::UpdateJobRequest request = Priority(7);
  (*request.mutable_labels())["team"] = "vision";
  request.mutable_update_mask()->add_paths("labels");
  ASSERT_TRUE(Update(request).ok());

  Stop();
  Start();

  EXPECT_EQ(Get("small-1")->spec().priority(), 7);
  EXPECT_EQ(Get("small-1")->labels().at("team"), "vision");
}

TEST_F(JobsApiTest, AnUpdateOfWhatWasReadBeforeIsAborted) {
  const std::string etag = Create(SmallSpec())->etag();
  v1::UpdateJobRequest request = Priority(7);
  request.set_etag(etag);
  ASSERT_TRUE(Update(request).ok());

  request.mutable_spec()->set_priority(8);
  const absl::Status status = Update(request).status();

  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(ReasonOf(status), "ETAG_MISMATCH");
  EXPECT_EQ(Get("small-1")->spec().priority(), 7);
}

TEST_F(JobsApiTest, AnUpdateThatOnlyChecksChangesNothing) {
  const std::string etag = Create(SmallSpec())->etag();
  v1::UpdateJobRequest request = Priority(7);
  request.set_validate_only(true);

  EXPECT_EQ(Update(request)->spec().priority(), 7);
  EXPECT_EQ(Get("small-1")->etag(), etag);
  request.mutable_spec()->set_priority(5000);
  EXPECT_TRUE(absl::IsInvalidArgument(Update(request).status()));
}

TEST_F(JobsApiTest, OfManyUpdatesAtOnceNoneIsLost) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::vector<std::string> paths = {"spec.priority", "spec.stop.epochs", "spec.workers.max",
                                          "spec.adapt.frozen"};
  std::vector<std::future<absl::Status>> calls;
  for (const std::string& path : paths) {
    calls.push_back(std::async(std::launch::async, [this, path] {
      v1::UpdateJobRequest request;
      request.set_name("small-1");
      request.mutable_spec()->set_priority(3);
      request.mutable_spec()->mutable_stop()->set_epochs(4);
      request.mutable_spec()->mutable_workers()->set_max(5);
      request.mutable_spec()->mutable_adapt()->add_frozen("batch");
      request.mutable_update_mask()->add_paths(path);
      return Update(request).status();
    }));
  }
  for (auto& call : calls) EXPECT_TRUE(call.get().ok());

  const v1::JobSpec spec = Get("small-1")->spec();
  EXPECT_EQ(spec.priority(), 3);
  EXPECT_EQ(spec.stop().epochs(), 4u);
  EXPECT_EQ(spec.stop().rounds(), 1u);
  EXPECT_EQ(spec.workers().max(), 5u);
  EXPECT_THAT(spec.adapt().frozen(), ElementsAre("batch"));
}

TEST_F(JobsApiTest, AJobThatIsOverCannotBeChanged) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  ASSERT_TRUE(Cancel("small-1").ok());

  for (const absl::Status& status :
       {Update(Priority(7)).status(), Pause("small-1").status(), Resume("small-1").status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonOf(status), "JOB_OVER");
  }
  EXPECT_EQ(ReasonOf(Pause("small-9").status()), "JOB_NOT_FOUND");
}

TEST_F(JobsApiTest, AJobThatWaitsIsPausedAndResumedAndBothAreDurable) {
  ASSERT_TRUE(Create(SmallSpec()).ok());

  EXPECT_EQ(Pause("small-1")->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(Pause("small-1")->state(), v1::JOB_STATE_PAUSED);
  Stop();
  Start();
  EXPECT_EQ(Get("small-1")->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(Resume("small-1")->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Resume("small-1")->state(), v1::JOB_STATE_QUEUED);
}

TEST_F(JobsApiTest, OnlyAJobThatIsOverIsDeletedAndThenItIsGone) {
  ASSERT_TRUE(Create(SmallSpec(), "r-1").ok());
  const absl::Status early = Delete("small-1");
  EXPECT_TRUE(absl::IsFailedPrecondition(early));
  EXPECT_EQ(ReasonOf(early), "JOB_NOT_OVER");
  ASSERT_TRUE(Cancel("small-1").ok());
  const std::string files = folder_ + "/state/jobs/small-1";
  std::filesystem::create_directories(files + "/result");

  ASSERT_TRUE(Delete("small-1").ok());

  EXPECT_EQ(ReasonOf(Get("small-1").status()), "JOB_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Delete("small-1")), "JOB_NOT_FOUND");
  Stop();  // and with it the thread that removes files
  EXPECT_FALSE(std::filesystem::exists(files));
  Start();
  EXPECT_EQ(ReasonOf(Get("small-1").status()), "JOB_NOT_FOUND");
  EXPECT_EQ(Create(SmallSpec(), "r-1")->name(), "projects/default/jobs/small-2");
}

TEST_F(JobsApiTest, JobsAreNumberedWithinTheirNames) {
  v1::JobSpec other = SmallSpec();
  other.set_name("other");

  EXPECT_EQ(Create(SmallSpec(), "r-1")->name(), "projects/default/jobs/small-1");
  EXPECT_EQ(Create(other, "r-2")->name(), "projects/default/jobs/other-1");
  EXPECT_EQ(Create(SmallSpec(), "r-3")->name(), "projects/default/jobs/small-2");
  Stop();
  Start();
  EXPECT_EQ(Create(other, "r-4")->name(), "projects/default/jobs/other-2");
  for (const std::string name : {"small-1", "small-2", "other-1", "other-2"}) {
    EXPECT_TRUE(Get(name).ok()) << name;
    EXPECT_TRUE(Cancel(name).ok()) << name;
  }
}

TEST_F(JobsApiTest, AJobCannotBeginFromOneThatHasNothing) {
  ASSERT_TRUE(Create(SmallSpec(), "r-1").ok());
  v1::CreateJobRequest request;
  *request.mutable_spec() = SmallSpec();
  const auto refused = [&](const std::string& from) {
    request.set_from(from);
    return Call(jobs_, &v1::Jobs::Stub::CreateJob, request).status();
  };

  EXPECT_EQ(ReasonOf(refused("small-1")), "NOTHING_TO_START_FROM");
  EXPECT_EQ(ReasonOf(refused("small-9")), "JOB_NOT_FOUND");
  EXPECT_TRUE(absl::IsInvalidArgument(refused("Small_1")));
  request.set_validate_only(true);
  EXPECT_EQ(ReasonOf(refused("small-1")), "NOTHING_TO_START_FROM");
}

TEST_F(JobsApiTest, AllWhoSubmitAtOnceGetJobsOfTheirOwn) {
  std::vector<std::future<absl::StatusOr<v1::Job>>> calls;
  for (int i = 0; i < 32; ++i) {
    calls.push_back(std::async(std::launch::async, [this] { return Create(SmallSpec()); }));
  }
  std::set<std::string> names;
  for (auto& call : calls) names.insert(call.get()->name());
  Stop();
  Start();

  EXPECT_EQ(names.size(), 32u);
  for (const std::string& name : names) EXPECT_TRUE(Get(name).ok()) << name;
}

TEST_F(JobsApiTest, ARequestIdOutlivesTheCoordinator) {
  const absl::StatusOr<v1::Job> first = Create(SmallSpec(), "r-1");
  Stop();
  Start();

  EXPECT_EQ(Create(SmallSpec(), "r-1")->uid(), first->uid());
}

TEST_F(JobsApiTest, ARequestIdIsOfOneSpecification) {
  ASSERT_TRUE(Create(SmallSpec(), "r-1").ok());
  v1::JobSpec other = SmallSpec();
  other.set_seed(other.seed() + 1);

  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = Create(other, "r-1").status();

    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(runtime::ReasonOf(refused).reason, "REQUEST_ID_USED");
    EXPECT_EQ(runtime::ReasonOf(refused).metadata.at("job"), "small-1");
    // What the store alone remembers is held to it as well.
    Stop();
    Start();
  }
  EXPECT_TRUE(Create(other, "r-2").ok());
}

// ---- Waiting for changes

TEST_F(JobsApiTest, AWaitEndsWithTheChange) {
  const std::string etag = Create(SmallSpec())->etag();
  auto waiting = std::async(std::launch::async, [&] { return Get("small-1", etag); });
  const auto updated = Update(Priority(7));
  ASSERT_TRUE(updated.ok()) << updated.status();

  const absl::StatusOr<v1::Job> job = waiting.get();

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec().priority(), 7);
  EXPECT_EQ(job->etag(), updated->etag());
}

TEST_F(JobsApiTest, AWaitForWhatHasChangedAlreadyEndsAtOnce) {
  const std::string etag = Create(SmallSpec())->etag();
  ASSERT_TRUE(Update(Priority(7)).ok());

  EXPECT_EQ(Get("small-1", etag)->spec().priority(), 7);
  EXPECT_EQ(Get("small-1", "anything")->spec().priority(), 7);
}

TEST_F(JobsApiTest, AWaitIsNeverLongerThanItsCall) {
  v1::GetJobRequest request;
  request.set_name("small-1");
  request.set_wait_for_change_after(Create(SmallSpec())->etag());

  const absl::StatusOr<v1::Job> job =
      Call(jobs_, &v1::Jobs::Stub::GetJob, request, std::chrono::seconds(1));

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->etag(), request.wait_for_change_after());
}

// ---- Watching

TEST_F(JobsApiTest, AWatchGoesOnWhereItBroke) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::vector<v1::JobEvent> seen = Watch("", 1, nullptr);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].job().state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(Update(Priority(1)).ok());
  ASSERT_TRUE(Update(Priority(2)).ok());

  const std::vector<v1::JobEvent> missed = Watch(seen[0].resume_token(), 2, nullptr);
  ASSERT_EQ(missed.size(), 2u);
  EXPECT_EQ(missed[0].job().spec().priority(), 1);
  EXPECT_EQ(missed[1].job().spec().priority(), 2);
  ASSERT_TRUE(Cancel("small-1").ok());
  absl::Status end = absl::UnknownError("");
  const std::vector<v1::JobEvent> last = Watch(missed[1].resume_token(), 10, &end);

  EXPECT_TRUE(end.ok()) << end;
  ASSERT_FALSE(last.empty());
  EXPECT_EQ(last.back().job().state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(JobsApiTest, ATokenOfAFormerCoordinatorHasExpired) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  const std::string token = Watch("", 1, nullptr)[0].resume_token();
  Stop();
  Start();

  absl::Status end;
  EXPECT_THAT(Watch(token, 1, &end), IsEmpty());

  EXPECT_TRUE(absl::IsOutOfRange(end)) << end;
  EXPECT_EQ(ReasonOf(end), "WATCH_EXPIRED");
}

TEST_F(JobsApiTest, LogsThatAreFollowedSayThatTheyAreOpenAndThoseRefusedDoNot) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  v1::StreamLogsRequest request;
  request.set_follow(true);
  for (const std::string name : {"small-1", "small-9"}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    request.set_name(name);

    const auto reader = jobs_->StreamLogs(&context, request);
    reader->WaitForInitialMetadata();

    EXPECT_EQ(context.GetServerInitialMetadata().count("tactus-stream"), name == "small-1");
    context.TryCancel();
    v1::LogEntry entry;
    EXPECT_FALSE(reader->Read(&entry));
    EXPECT_FALSE(reader->Finish().ok());
  }
}

TEST_F(JobsApiTest, ATokenThatIsNoneIsRefused) {
  ASSERT_TRUE(Create(SmallSpec()).ok());

  absl::Status end;
  EXPECT_THAT(Watch("garbage", 1, &end), IsEmpty());

  EXPECT_TRUE(absl::IsInvalidArgument(end)) << end;
}

// ---- Lists

TEST_F(JobsApiTest, AFilterAndAnOrderThatAreWrongAreSaidByTheirField) {
  v1::ListJobsRequest request;
  request.set_filter("colour=red");
  const absl::Status filter = Call(jobs_, &v1::Jobs::Stub::ListJobs, request).status();
  request.Clear();
  request.set_order_by("colour");
  const absl::Status order = Call(jobs_, &v1::Jobs::Stub::ListJobs, request).status();

  ASSERT_EQ(runtime::FieldViolations(filter).size(), 1u) << filter;
  EXPECT_EQ(runtime::FieldViolations(filter)[0].field, "filter");
  ASSERT_EQ(runtime::FieldViolations(order).size(), 1u) << order;
  EXPECT_EQ(runtime::FieldViolations(order)[0].field, "order_by");
}

TEST_F(JobsApiTest, JobsAreListedByStateAndPriority) {
  v1::JobSpec spec = SmallSpec();
  for (const int priority : {1, 3, 2}) {
    spec.set_priority(priority);
    ASSERT_TRUE(Create(spec).ok());
  }
  ASSERT_TRUE(Cancel("small-1").ok());
  v1::ListJobsRequest request;
  request.set_filter("state=QUEUED");
  request.set_order_by("priority desc");

  const absl::StatusOr<v1::ListJobsResponse> listed =
      Call(jobs_, &v1::Jobs::Stub::ListJobs, request);

  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->jobs_size(), 2);
  EXPECT_EQ(listed->jobs(0).spec().priority(), 3);
  EXPECT_EQ(listed->jobs(1).spec().priority(), 2);
}

TEST_F(JobsApiTest, EveryRefusalHasAReasonAndTransientOnesATime) {
  v1::ListRoundsRequest request;
  request.set_name("small-9");

  const absl::Status status = Call(jobs_, &v1::Jobs::Stub::ListRounds, request).status();

  EXPECT_EQ(ReasonOf(status), "JOB_NOT_FOUND");
  EXPECT_THAT(std::string(status.message()), HasSubstr("small-9"));
}

}  // namespace
}  // namespace tactus::service
