// What is left of a job that retention removed: nothing, also in memory.

#include <gtest/gtest.h>

#include <string>

#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

class RetentionTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.retain_jobs = Duration(1);
    options_.upkeep = {.first = Duration::zero(), .prune = std::chrono::milliseconds(5)};
    ServerFixture::SetUp();
  }

  // What a watch from `token` on ends with.
  absl::Status EndOfWatch(const std::string& token) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name("small-1");
    request.set_resume_token(token);
    const auto reader = jobs_->WatchJob(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
    }
    return runtime::FromGrpc(reader->Finish());
  }
};

TEST_F(RetentionTest, AJobThatIsGoneIsNotFoundAndItsRequestIdIsFreeAgain) {
  const absl::StatusOr<v1::Job> made = Create(SmallSpec(), "request");
  ASSERT_TRUE(made.ok()) << made.status();
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_name("small-1");
  const auto watch = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(watch->Read(&event));
  const absl::Status cancelled = Cancel("small-1").status();  // it may be gone before the answer
  ASSERT_TRUE(cancelled.ok() || absl::IsNotFound(cancelled)) << cancelled;
  while (watch->Read(&event)) {
  }
  EXPECT_TRUE(runtime::FromGrpc(watch->Finish()).ok());

  ASSERT_TRUE(Eventually([&] { return absl::IsNotFound(Get("small-1").status()); }));

  EXPECT_TRUE(absl::IsNotFound(Get("small-1", made->etag()).status()));
  EXPECT_TRUE(absl::IsNotFound(EndOfWatch("")));
  EXPECT_TRUE(absl::IsNotFound(EndOfWatch(event.resume_token())));
  absl::StatusOr<v1::Job> again;
  ASSERT_TRUE(Eventually([&] {
    again = Create(SmallSpec(), "request");
    return again.ok();
  })) << again.status();
  EXPECT_EQ(again->name(), "projects/default/jobs/small-2");
}

}  // namespace
}  // namespace tactus::service
