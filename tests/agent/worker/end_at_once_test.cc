#include "agent/worker/end_at_once.h"

#include <future>
#include <thread>

#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

// From the thread of a transport, while the worker's own waits for what never comes.
TEST(EndAtOnceDeathTest, TheProcessEndsWithTheReasonWhateverItsOtherThreadsDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    std::promise<void> never;
    std::thread watch([] { EndAtOnce("NCCL did not end within 30 s: the process has to end"); });
    never.get_future().wait();
  };

  EXPECT_EXIT(hang(), testing::ExitedWithCode(kExitHung),
              "tactus-worker: NCCL did not end within 30 s: the process has to end");
}

}  // namespace
}  // namespace tactus::worker
