// A group that falls apart while it ends, or while its coordinator restarts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/regroup_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// ---- It ends, or is to

TEST_F(JobRegroupTest, APausedJobsCheckpointIsMadeByThoseWhoStay) {
  rig_.Step(JobPaused{.job = JobId{1}});
  Regroup();
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_THAT(Sent<StopMessage>(Meet()), IsEmpty()) << "who awaits a group would leave for it";

  const std::vector<StopMessage> stops = Sent<StopMessage>(Report(1));

  ASSERT_THAT(stops, SizeIs(2));
  EXPECT_TRUE(stops[0].suspend);
  EXPECT_EQ(record().state_reason, "paused by the user");
}

TEST_F(JobRegroupTest, APauseMeanwhileIsAskedForWhenTheyHaveMet) {
  Kill(3);
  EXPECT_THAT(Sent<StopMessage>(rig_.Step(JobPaused{.job = JobId{1}})), IsEmpty());
  Lose(1);
  Lose(2);
  Meet();

  EXPECT_THAT(Sent<StopMessage>(Report(1)), SizeIs(2));
}

TEST_F(JobRegroupTest, ACancelMeanwhileHasTheTimeThatItsUserGave) {
  Kill(3);
  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .grace = std::chrono::seconds(3)});
  Lose(1);
  Lose(2);
  Meet();
  Report(1);
  EXPECT_EQ(record().state, JobState::kStopping);

  Wait(3);
  EXPECT_EQ(record().state, JobState::kCancelled);
}

TEST_F(JobRegroupTest, ACancelThatDiscardsMeanwhileEndsItAtOnce) {
  Kill(3);
  Lose(1);
  const Actions ended =
      rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .discard = true});

  EXPECT_EQ(record().state, JobState::kCancelled);
  EXPECT_THAT(Stopped(ended), ElementsAre(WorkerId{1}, WorkerId{2}));
}

TEST_F(JobRegroupTest, AResultIsMadeByWhoeverIsFirstThen) {
  rig_.Step(Said(3, Finished(2)));
  rig_.Step(WorkerExited{.worker = WorkerId{3}});
  ASSERT_EQ(record().state, JobState::kStopping);
  Kill(1);
  EXPECT_EQ(record().state, JobState::kStopping);
  ASSERT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(1));
  Meet();
  rig_.Step(Said(2, Finished(0)));
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_TRUE(record().result);
}

TEST_F(JobRegroupTest, WhenRankZeroHasSaidItsLastWordNobodyElseIsNeeded) {
  rig_.Step(Said(1, Finished(0)));
  Kill(3);
  EXPECT_EQ(record().state, JobState::kStopping);
  EXPECT_THAT(Stopped(Lose(2)), ElementsAre(WorkerId{2}));
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_EQ(record().regroups, 0u);
}

TEST_F(JobRegroupTest, RankZerosLastWordMayComeWhileTheOthersRegroup) {
  rig_.Step(Said(2, Finished(1)));
  Kill(3);
  rig_.Step(Said(1, Finished(0)));
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
}

TEST_F(JobRegroupTest, AnExcusedMemberIsExcusedAfterARestart) {
  rig_.Step(Said(1, Finished(0)));
  Kill(3);
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {});
  rig_.Step(Said(2, Finished(1)));
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
}

// ---- The coordinator restarts meanwhile

TEST_F(JobRegroupTest, ARestartRemembersWhoSaidWhat) {
  Kill(3);
  Lose(1, 5);
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {});  // its exit was acknowledged

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Lose(2, 4));

  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].generation, 2u);
  EXPECT_THAT(groups[0].rounds, ElementsAre(5u, 4u));
}

TEST_F(JobRegroupTest, AGroupThatARestartFindsMayHaveMet) {
  Regroup();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  EXPECT_THAT(Sent<GroupMessage>(Wait(1)), IsEmpty());
  Report(1);

  EXPECT_EQ(record().state_reason, "training on 2 workers");
  EXPECT_EQ(record().generation, 2u);
}

TEST_F(JobRegroupTest, AGroupThatARestartFindsMayHaveEnded) {
  Kill(1);
  Lose(2);
  Lose(3);
  rig_.Restart();
  rig_.Rejoin("b", 1, {WorkerId{3}});
  rig_.Step(Said(3, Finished(1)));
  rig_.Step(WorkerExited{.worker = WorkerId{3}});
  rig_.Rejoin("a", 2, {WorkerId{2}});
  rig_.Step(Said(2, Finished(0)));
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_EQ(record().generation, 2u);
}

TEST_F(JobRegroupTest, AGroupThatARestartFindsAndThatReportsNothingIsFormedAnew) {
  Regroup();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Wait(3));

  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].generation, 3u);
  EXPECT_THAT(groups[0].rounds, ElementsAre(1u, 1u));
}

// What it said to the coordinator before was not durable, and is said again.
TEST_F(JobRegroupTest, WhoHadGoneOnSaysSoToTheCoordinatorThatRestarts) {
  Regroup();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Step(Said(2, GroupLostMessage{.generation = 1, .rounds = 2, .reason = "overtaken"}));

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Kill(1));

  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].rounds, ElementsAre(2u));
}

TEST_F(JobRegroupTest, AndWhileItWaitsForTheOthersToReportBack) {
  Kill(1);
  Lose(2);
  Lose(3);
  ASSERT_EQ(record().generation, 2u);
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{2}});
  rig_.Step(Said(2, GroupLostMessage{.generation = 1, .rounds = 2, .reason = "overtaken"}));

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(rig_.Rejoin("b", 1, {}));

  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].rounds, ElementsAre(2u));
}

TEST_F(JobRegroupTest, ATrainingGroupFallsApartWhileItsCoordinatorIsAway) {
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  Lose(1);
  Lose(2);
  rig_.Rejoin("b", 1, {});

  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().generation, 2u);
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
}

}  // namespace
}  // namespace tactus::job
