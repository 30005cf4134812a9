#include "runtime/control_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <vector>

#include "runtime/now.h"

namespace tactus::runtime {
namespace {

TEST(ControlThreadTest, TasksRunInTheOrderOfTheirPosting) {
  ControlThread thread;
  std::vector<int> ran;
  for (int i = 0; i < 100; ++i) thread.Post([&ran, i] { ran.push_back(i); });

  thread.RunAndWait([] {});

  ASSERT_EQ(ran.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST(ControlThreadTest, StopRunsWhatWasPostedAndNoMore) {
  int ran = 0;
  ControlThread thread;
  thread.Post([&ran] { ++ran; });

  thread.Stop();
  thread.Post([&ran] { ++ran; });
  thread.Stop();

  EXPECT_EQ(ran, 1);
}

TEST(ControlThreadTest, ATimerThatIsPendingDoesNotHoldUpStop) {
  ControlThread thread;
  std::optional<Timer> timer;
  bool fired = false;
  thread.RunAndWait([&] {
    timer.emplace(thread);
    timer->After(Seconds(3600), [&fired] { fired = true; });
  });

  thread.Stop();

  EXPECT_FALSE(fired);
}

TEST(ControlThreadTest, ATimerOfThePastFiresAtOnceAndOnce) {
  ControlThread thread;
  std::optional<Timer> timer;
  std::promise<void> fired;
  thread.Post([&] {
    timer.emplace(thread);
    timer->At(Now() - Seconds(1), [&fired] { fired.set_value(); });
  });

  fired.get_future().wait();  // a second call would throw

  thread.RunAndWait([&] { timer.reset(); });
}

TEST(ControlThreadTest, CancelAlsoStopsACallThatIsDue) {
  ControlThread thread;
  std::optional<Timer> timer;
  bool fired = false;
  bool later_fired = false;
  thread.RunAndWait([&] {
    timer.emplace(thread);
    timer->At(Now() - Seconds(1), [&fired] { fired = true; });
    timer->Cancel();
  });
  std::promise<void> later;
  thread.Post([&] {
    timer->At(Now() - Seconds(1), [&] {
      later_fired = true;
      later.set_value();
    });
  });
  later.get_future().wait();

  EXPECT_FALSE(fired);
  EXPECT_TRUE(later_fired);
  thread.RunAndWait([&] { timer.reset(); });
}

}  // namespace
}  // namespace tactus::runtime
