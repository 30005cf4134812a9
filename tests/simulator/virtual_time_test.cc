// Scheduler, processes: what happens when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/process.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {
namespace {

using testing::ElementsAre;

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

void RunAll(Scheduler& scheduler) {
  while (scheduler.RunNext()) {
  }
}

TEST(SchedulerTest, CallbacksRunInTheOrderOfTheirTimes) {
  Scheduler scheduler;
  std::vector<double> times;
  for (const double seconds : {3.0, 1.0, 2.0}) {
    scheduler.At(At(seconds), [&] { times.push_back(ToSeconds(scheduler.now() - Instant{})); });
  }

  RunAll(scheduler);

  EXPECT_THAT(times, ElementsAre(1.0, 2.0, 3.0));
}

TEST(SchedulerTest, EqualTimesRunInTheOrderOfScheduling) {
  Scheduler scheduler;
  std::string order;
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) {
    scheduler.At(At(1), [&order, name] { order += name; });
  }

  RunAll(scheduler);

  EXPECT_EQ(order, "abcde");
}

TEST(SchedulerTest, ThePastIsNow) {
  Scheduler scheduler;
  std::string order;
  scheduler.At(At(2), [&] {
    order += 'a';
    scheduler.At(At(1), [&] { order += 'c'; });
  });
  scheduler.At(At(2), [&] { order += 'b'; });

  RunAll(scheduler);

  EXPECT_EQ(order, "abc");
  EXPECT_EQ(scheduler.now(), At(2));
}

TEST(ProcessTest, SleepsInVirtualTime) {
  Scheduler scheduler;
  Instant woke{};
  Process* self = nullptr;
  Process process(scheduler, [&] {
    EXPECT_TRUE(self->SleepUntil(At(7), WaitReason::kComputing));
    woke = scheduler.now();
  });
  self = &process;

  RunAll(scheduler);

  EXPECT_EQ(woke, At(7));
  EXPECT_TRUE(process.ended());
}

TEST(ProcessTest, AWakeOfAnEarlierWaitDoesNotEndALaterOne) {
  Scheduler scheduler;
  std::vector<double> woke;
  Process* self = nullptr;
  Process process(scheduler, [&] {
    for (int i = 0; i < 2; ++i) {
      self->SleepUntilWoken(WaitReason::kMessage);
      woke.push_back(ToSeconds(scheduler.now() - Instant{}));
    }
  });
  self = &process;
  scheduler.At(At(1), [&] {
    process.WakeAt(At(2));
    process.WakeAt(At(3));
  });
  scheduler.At(At(9), [&] { process.Wake(); });

  RunAll(scheduler);

  EXPECT_THAT(woke, ElementsAre(2.0, 9.0));
}

// A stretch of time during which a process stands still. [s]
struct Pause {
  double from = 0;
  double until = 0;
};

// When a wait that would have ended at 10 s ends.
Instant WakesAt(WaitReason reason, const std::vector<Pause>& pauses) {
  Scheduler scheduler;
  Instant woke{};
  Process* self = nullptr;
  Process process(scheduler, [&] {
    self->SleepUntil(At(10), reason);
    woke = scheduler.now();
  });
  self = &process;
  for (const Pause& pause : pauses) {
    scheduler.At(At(pause.from), [&process, &pause] { process.PauseUntil(At(pause.until)); });
  }
  RunAll(scheduler);
  return woke;
}

TEST(ProcessTest, APauseExtendsItsOwnWorkByItsLength) {
  for (const WaitReason reason : {WaitReason::kStarting, WaitReason::kComputing}) {
    EXPECT_EQ(WakesAt(reason, {{.from = 3, .until = 4}}), At(11));
    EXPECT_EQ(WakesAt(reason, {{.from = 8, .until = 15}}), At(17));
    EXPECT_EQ(WakesAt(reason, {{.from = 0, .until = 2}, {.from = 11, .until = 14}}), At(15));
  }
}

TEST(ProcessTest, OverlappingPausesExtendWorkByTheirUnion) {
  EXPECT_EQ(WakesAt(WaitReason::kComputing, {{.from = 1, .until = 5}, {.from = 3, .until = 8}}),
            At(17));
  EXPECT_EQ(WakesAt(WaitReason::kComputing, {{.from = 1, .until = 8}, {.from = 3, .until = 5}}),
            At(17));
  EXPECT_EQ(WakesAt(WaitReason::kComputing, {{.from = 1, .until = 5}, {.from = 5, .until = 8}}),
            At(17));
}

TEST(ProcessTest, APauseDelaysWhatOthersDoOnlyWhenItComesMeanwhile) {
  for (const WaitReason reason : {WaitReason::kMessage, WaitReason::kCollective}) {
    EXPECT_EQ(WakesAt(reason, {{.from = 3, .until = 4}}), At(10));
    EXPECT_EQ(WakesAt(reason, {{.from = 8, .until = 15}}), At(15));
  }
}

TEST(ProcessTest, APauseForEverEndsWithTheProcess) {
  Scheduler scheduler;
  bool slept = true;
  Process* self = nullptr;
  Process process(scheduler, [&] { slept = self->SleepUntil(At(2), WaitReason::kComputing); });
  self = &process;
  scheduler.At(At(1), [&] { process.PauseUntil(Instant::max()); });
  RunAll(scheduler);
  ASSERT_FALSE(process.ended());

  process.Kill();

  EXPECT_FALSE(slept);
  EXPECT_EQ(scheduler.now(), At(2));
}

TEST(ProcessTest, AKilledProcessRunsToItsEndWithoutSleeping) {
  Scheduler scheduler;
  bool slept = true;
  bool slept_again = true;
  Process* self = nullptr;
  Process process(scheduler, [&] {
    slept = self->SleepUntil(At(100), WaitReason::kComputing);
    slept_again = self->SleepUntil(At(200), WaitReason::kComputing);
  });
  self = &process;
  scheduler.At(At(1), [&] { process.Kill(); });

  RunAll(scheduler);

  EXPECT_FALSE(slept);
  EXPECT_FALSE(slept_again);
  EXPECT_TRUE(process.ended());
}

}  // namespace
}  // namespace tactus::simulator
