// What users are told while the coordinator cannot write.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <future>
#include <string>

#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

std::string ReasonOf(const absl::Status& status) { return runtime::ReasonOf(status).reason; }

class StoreFailureTest : public ServerFixture {
 protected:
  // Nothing more goes into files of this process, as on a full disk.
  void FillDisk() {
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  void MakeRoom() { ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }

  rlimit before_{};
};

TEST_F(StoreFailureTest, WhileNothingCanBeWrittenChangesAreRefusedAndThenItGoesOn) {
  ASSERT_TRUE(Create(SmallSpec(), "before").ok());

  FillDisk();
  auto waiting = std::async(std::launch::async, [&] { return Create(SmallSpec(), "waiting"); });
  absl::Status refused;
  // The first change to be refused is the one that comes after the first write that failed.
  const bool failed = Eventually([&] {
    v1::PauseJobRequest request;
    request.set_name("small-1");
    refused =
        Call(jobs_, &v1::Jobs::Stub::PauseJob, request, std::chrono::milliseconds(100)).status();
    return absl::IsUnavailable(refused);
  });
  const absl::StatusOr<v1::Job> still_read = Get("small-1");
  MakeRoom();

  ASSERT_TRUE(failed) << refused;
  EXPECT_EQ(ReasonOf(refused), "STORE_UNAVAILABLE");
  EXPECT_TRUE(runtime::RetryDelayOf(refused).has_value());
  EXPECT_TRUE(still_read.ok()) << still_read.status();
  // It waited for its write, or was refused like the other.
  absl::StatusOr<v1::Job> made = waiting.get();
  EXPECT_TRUE(made.ok() || ReasonOf(made.status()) == "STORE_UNAVAILABLE") << made.status();
  ASSERT_TRUE(Eventually([&] {
    made = Create(SmallSpec(), "waiting");
    return made.ok();
  })) << made.status();
  Stop();
  Start();
  EXPECT_EQ(Create(SmallSpec(), "waiting")->name(), made->name());
}

TEST_F(StoreFailureTest, AStopAnswersWhatWaitsForItsWrite) {
  ASSERT_TRUE(Create(SmallSpec(), "before").ok());
  FillDisk();
  auto waiting = std::async(std::launch::async, [&] { return Create(SmallSpec(), "waiting"); });
  ASSERT_EQ(waiting.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);

  Stop();
  MakeRoom();

  EXPECT_EQ(ReasonOf(waiting.get().status()), "COORDINATOR_STOPPING");
}

}  // namespace
}  // namespace tactus::service
