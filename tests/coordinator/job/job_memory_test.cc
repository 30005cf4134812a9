// What a job's planner learned, across restarts of the coordinator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

JobRecord Adapting(const std::string& batch) {
  return Job(1, {.workers_min = 1, .workers_max = 3, .adapt = {.batch_policy = batch}});
}

TEST(JobMemoryTest, ItIsWrittenWithTheFirstPlanAndWithEveryOther) {
  Rig rig(Adapting("proportional"));
  rig.ToFormed();
  EXPECT_FALSE(rig.memory().empty());

  for (int i = 0; i < 20; ++i) {
    const Actions actions = rig.Round();
    EXPECT_EQ(Only<PersistMemory>(actions).size(), PlansSent(actions).empty() ? 0u : 1u);
    if (!PlansSent(actions).empty()) return;
  }
  FAIL() << "nothing was decided";
}

TEST(JobMemoryTest, WhereNothingIsDecidedItIsWrittenEveryTenSeconds) {
  Rig rig(Adapting("fixed"));
  rig.ToRunning();
  const double start = rig.seconds();
  int written = 0;

  while (rig.seconds() < start + 35) {
    written += static_cast<int>(Only<PersistMemory>(rig.Round()).size());
  }

  EXPECT_GE(written, 2);
  EXPECT_LE(written, 3);
}

TEST(JobMemoryTest, ItEndsWithTheJob) {
  Rig rig(Adapting("proportional"));
  rig.ToRunning();
  ASSERT_FALSE(rig.memory().empty());

  rig.FinishAll();
  rig.StoreAll();

  ASSERT_EQ(rig.record().state, JobState::kSucceeded);
  EXPECT_EQ(rig.memory(), "");
}

TEST(JobMemoryTest, WhatCanBeReadIsTakenUpWithoutAWord) {
  Rig rig(Adapting("proportional"));
  rig.ToRunning();

  const Actions actions = rig.Restart();

  EXPECT_THAT(Only<PublishRelearning>(actions), IsEmpty());
  EXPECT_THAT(Only<PersistMemory>(actions), IsEmpty());
}

TEST(JobMemoryTest, WhatCannotBeReadIsToldOfAndRemovedAndTheJobGoesOn) {
  Rig rig(Adapting("proportional"));
  rig.ToRunning();
  rig.memory()[20] ^= 1;

  const Actions actions = rig.Restart();

  const auto told = Only<PublishRelearning>(actions);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].job, JobId{1});
  EXPECT_EQ(told[0].reason, "it is damaged");
  EXPECT_EQ(rig.memory(), "");
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.Rejoin("b", 1, {WorkerId{3}});
  std::vector<policies::Plan> plans;
  for (int i = 0; i < 20 && plans.empty(); ++i) plans = PlansSent(rig.Round());
  EXPECT_THAT(plans, SizeIs(3));
  EXPECT_FALSE(rig.memory().empty());
}

TEST(JobMemoryTest, ThatOfAGroupOfAnotherSizeIsNotTakenUp) {
  Rig rig(Adapting("proportional"));
  rig.ToRunning();
  policies::Planner other(rig.record().settings.adapt);
  other.Start({.members = 2});
  rig.memory() = other.Memory();

  const auto told = Only<PublishRelearning>(rig.Restart());

  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "it is of a group of 2, and one of 3 goes on");
}

}  // namespace
}  // namespace tactus::job
