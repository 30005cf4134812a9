// What bench_nccl tries of NCCL, on the doubles of NCCL and CUDA: that each case passes where all
// is well, and fails where it is not. No figure comes from here.

#include "bench/nccl/cases.h"

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::bench::nccl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

Instant Now() { return Instant(std::chrono::steady_clock::now().time_since_epoch()); }

class CasesTest : public ::testing::Test {
 protected:
  CasesTest() {
    cuda_double::Reset({.devices = 2});
    nccl_double::Reset();
  }
  ~CasesTest() override {
    nccl_double::Release();
    EXPECT_EQ(nccl_double::Communicators(), 0);
    EXPECT_THAT(nccl_double::Complaints(), ElementsAre());
  }

  static Setting SettingOf(int rank, int size, double limit_seconds) {
    return {.place = {.rank = rank, .size = size, .device = rank},
            .limit = Seconds(limit_seconds),
            .abort_limit = Seconds(60),
            .long_floats = 4096,
            .now = Now};
  }

  // A case as two members, each in a thread.
  static std::vector<Outcome> AsPair(double limit_seconds,
                                     const std::function<Outcome(const Setting&)>& run) {
    const cuda::nccl::MadeUniqueId id = cuda::nccl::MakeUniqueId();
    std::vector<Outcome> outcomes(2);
    std::vector<std::thread> members;
    for (const int rank : {0, 1}) {
      members.emplace_back([&, rank] {
        Setting setting = SettingOf(rank, 2, limit_seconds);
        setting.place.id = *id.id;
        outcomes[static_cast<std::size_t>(rank)] = run(setting);
      });
    }
    for (std::thread& member : members) member.join();
    return outcomes;
  }

  static Setting AloneSetting() {
    Setting setting = SettingOf(0, 1, 60);
    setting.place.id = *cuda::nccl::MakeUniqueId().id;
    return setting;
  }
};

TEST_F(CasesTest, AGroupOfOneTellsWhatEachCallTakes) {
  const Outcome outcome = Alone(AloneSetting());

  EXPECT_TRUE(outcome.passed) << outcome.said;
  for (const char* const name : {"init_us", "first_all_reduce_done_us", "all_reduce_queued_us",
                                 "broadcast_done_us", "leave_us", "abort_us"}) {
    EXPECT_THAT(outcome.figures, Contains(Field(&Figure::name, name)));
  }
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 1);
  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 1);
}

TEST_F(CasesTest, AGroupOfOneFailsWhereACallDoes) {
  nccl_double::FailCall("ncclBroadcast", 1, ncclSystemError);

  const Outcome outcome = Alone(AloneSetting());

  EXPECT_FALSE(outcome.passed);
  EXPECT_THAT(outcome.said, HasSubstr("ncclBroadcast"));
}

TEST_F(CasesTest, GroupsThatNeverMeetEndByTheirLimitAndAreAborted) {
  int asked = 0;

  const Outcome outcome = Incomplete(SettingOf(0, 2, 0.01), [&asked] {
    ++asked;
    return Held{.threads = 3, .files = 9, .device_bytes = 1e9};
  });

  EXPECT_TRUE(outcome.passed) << outcome.said;
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), kIncompleteTimes);
  EXPECT_EQ(asked, 2);
}

TEST_F(CasesTest, WhatGrowsBeyondWhatNcclKeepsIsALeak) {
  // Of 15 groups a thread, three files and 1.5 MiB each.
  for (const Held kept : {Held{.threads = 15}, Held{.files = 45}, Held{.device_bytes = 22 << 20}}) {
    bool before = true;
    const Outcome outcome = Incomplete(
        SettingOf(0, 2, 0.001), [&] { return std::exchange(before, false) ? Held{} : kept; });
    EXPECT_TRUE(outcome.passed) << outcome.said;
  }
  for (const Held grown :
       {Held{.threads = 16}, Held{.files = 46}, Held{.device_bytes = 27 << 20}}) {
    bool before = true;

    const Outcome outcome = Incomplete(
        SettingOf(0, 2, 0.001), [&] { return std::exchange(before, false) ? Held{} : grown; });

    EXPECT_FALSE(outcome.passed);
    EXPECT_THAT(outcome.said, HasSubstr("leaks"));
  }
}

TEST_F(CasesTest, ARefusalWithItsReasonPasses) {
  nccl_double::FailCall("ncclCommInitRankConfig", 1, ncclInvalidUsage);

  const Outcome outcome = Refused(AloneSetting());

  EXPECT_TRUE(outcome.passed);
  EXPECT_THAT(outcome.said, HasSubstr("ncclCommInitRankConfig: invalid usage"));
}

TEST_F(CasesTest, ARefusalByTheLimitAloneIsNone) {
  Setting setting = SettingOf(0, 2, 0.01);
  setting.place.id = *cuda::nccl::MakeUniqueId().id;

  const Outcome outcome = Refused(setting);

  EXPECT_FALSE(outcome.passed);
  EXPECT_THAT(outcome.said, HasSubstr("by its limit alone"));
}

// The slower one may only see that the other has left again.
TEST_F(CasesTest, TwoThatMeetWereNotRefused) {
  const Outcome outcome = Together(AsPair(60, Refused));

  EXPECT_FALSE(outcome.passed);
  EXPECT_THAT(outcome.said, HasSubstr("two members met on one device"));
}

TEST_F(CasesTest, APairHasTheRightNumbers) {
  for (const Outcome& outcome : AsPair(60, Pair)) {
    EXPECT_TRUE(outcome.passed) << outcome.said;
    EXPECT_THAT(outcome.figures, Contains(Field(&Figure::name, "all_reduce_bytes_per_s")));
  }
}

TEST_F(CasesTest, AMemberThatIsLeftAloneEndsAndAborts) {
  bool killed = false;  // and the next, in rank 0's thread alone
  int asked = 0;

  const std::vector<Outcome> outcomes = AsPair(60, [&](const Setting& each) {
    const int rank = each.place.rank;
    Setting setting = each;
    if (rank == 0) {  // the time that it waits for the other passes by its asking
      setting.now = [&] { return Now() + (killed ? Seconds(++asked) : Duration(0)); };
    }
    return Bereaved(setting, [&killed, rank] {
      if (rank == 1) throw Unexpected{"killed"};
      killed = true;
    });
  });

  EXPECT_TRUE(outcomes[0].passed) << outcomes[0].said;
  EXPECT_THAT(outcomes[0].figures, Contains(Field(&Figure::name, "abort_us")));
  EXPECT_EQ(outcomes[1].said, "killed");
}

}  // namespace
}  // namespace tactus::bench::nccl
