// Pause, resume, update: a group that ends so that the job goes on later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class JobSuspensionTest : public testing::Test {
 protected:
  // All three say that they ended with a checkpoint.
  Actions SayAllSuspended() {
    Actions last;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      FinishedMessage message = Finished(rank);
      message.suspended = true;
      message.rounds = 7;
      message.train_seconds = trained_;
      message.files.clear();
      if (rank == 0) message.files = {kCheckpointFile};
      last = rig_.Step(Said(rank + 1, message));
    }
    return last;
  }
  Actions StoreCheckpoint() {
    return rig_.Step(
        ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "c0ffee"}});
  }
  Actions ExitAll() {
    Actions last;
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      last = rig_.Step(WorkerExited{.worker = WorkerId{worker}});
    }
    return last;
  }
  void ToPaused() {
    rig_.ToRunning();
    rig_.Step(JobPaused{JobId{1}});
    SayAllSuspended();
    StoreCheckpoint();
    ExitAll();
  }

  // The second group's workers, 4 to 6, get as far as their peers' addresses.
  void ToFormedAgain() {
    for (std::uint64_t worker = 4; worker <= 6; ++worker) rig_.Step(Said(worker, Ready()));
    for (std::uint64_t worker = 4; worker <= 6; ++worker) {
      rig_.Step(Said(worker, EndpointMessage{.generation = 2, .endpoint = "e"}));
    }
  }
  double Elapsed() const { return rig_.record().progress.elapsed_seconds; }

  Rig rig_;
  double trained_ = 0.75;  // as its workers say when they end with a checkpoint
};

TEST_F(JobSuspensionTest, APauseAsksForACheckpointAndLeavesTheDevices) {
  rig_.ToRunning();

  const Actions asked = rig_.Step(JobPaused{JobId{1}});

  ASSERT_THAT(Sent<StopMessage>(asked), SizeIs(3));
  EXPECT_TRUE(Sent<StopMessage>(asked)[0].suspend);
  EXPECT_EQ(rig_.record().state, JobState::kSuspending);
  SayAllSuspended();
  EXPECT_FALSE(rig_.record().checkpoint.has_value());
  StoreCheckpoint();
  ASSERT_TRUE(rig_.record().checkpoint.has_value());
  EXPECT_EQ(rig_.record().checkpoint->sha256, "c0ffee");
  EXPECT_EQ(rig_.record().checkpoint->rounds, 7u);
  EXPECT_EQ(rig_.record().state, JobState::kSuspending) << "its workers are still there";
  ExitAll();
  EXPECT_EQ(rig_.record().state, JobState::kPaused);
  EXPECT_THAT(rig_.cluster().membership().Free(), SizeIs(3));
}

TEST_F(JobSuspensionTest, AGroupThatSuspendsItselfHasAsLongAsOneThatFinishes) {
  rig_.ToRunning();
  FinishedMessage last = Finished(0);
  last.suspended = true;
  rig_.Step(Said(1, last));
  ASSERT_EQ(rig_.record().state, JobState::kSuspending);

  rig_.StepAt(rig_.seconds() + 899, Ticked{});
  EXPECT_EQ(rig_.record().state, JobState::kSuspending);
  rig_.StepAt(rig_.seconds() + 2, Ticked{});

  EXPECT_TRUE(rig_.record().suspension->lost);
  EXPECT_EQ(rig_.record().state_reason, "its workers did not finish within 15 minutes");
}

TEST_F(JobSuspensionTest, AResumedJobStartsFromItsCheckpointWithNewWorkersAndTheNextGeneration) {
  ToPaused();

  const Actions resumed = rig_.Step(JobResumed{JobId{1}});

  const std::vector<StartWorker> starts = Only<StartWorker>(resumed);
  ASSERT_THAT(starts, SizeIs(3));
  for (const StartWorker& start : starts) EXPECT_EQ(start.checkpoint, "c0ffee");
  EXPECT_EQ(starts[0].worker, WorkerId{4});
  Actions formed;
  for (std::uint64_t worker = 4; worker <= 6; ++worker) formed = rig_.Step(Said(worker, Ready()));
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(formed);
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_EQ(groups[0].generation, 2u);
  EXPECT_EQ(groups[0].plan.version, 2u);
  EXPECT_GT(rig_.record().progress.rounds, 0u) << "what was trained counts";
}

TEST_F(JobSuspensionTest, WhatWasTrainedBeforeAPauseIsElapsedAndThePauseIsNot) {
  ToPaused();
  EXPECT_DOUBLE_EQ(Elapsed(), 0.75);

  rig_.StepAt(5000, JobResumed{JobId{1}});
  ToFormedAgain();
  EXPECT_DOUBLE_EQ(Elapsed(), 0.75) << "no round of the second group is over";
  ReportMessage report = ReportOf(0, {.plan_version = 2, .batch_sizes = {32, 32, 32}}, 2);
  report.report.round_seconds = 0.5;
  rig_.Step(Said(4, report));

  EXPECT_NEAR(Elapsed(), 1.25, 1e-6);
}

TEST_F(JobSuspensionTest, ATimeThatIsNoneLeavesTheCoordinatorsCount) {
  trained_ = std::nan("");
  ToPaused();
  EXPECT_GT(Elapsed(), 0.5);
  EXPECT_LT(Elapsed(), rig_.seconds());
}

TEST_F(JobSuspensionTest, ATimeLongerThanThatSinceTheFirstRoundIsNotBelieved) {
  trained_ = 1e9;
  ToPaused();
  EXPECT_LT(Elapsed(), rig_.seconds());
}

TEST_F(JobSuspensionTest, ARestartBetweenCheckpointAndExitKeepsTheTimeAndCountsTheSuspension) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});
  SayAllSuspended();
  StoreCheckpoint();

  rig_.Restart();

  EXPECT_EQ(rig_.record().state, JobState::kPaused);
  EXPECT_EQ(rig_.record().suspensions, 1u);
  EXPECT_DOUBLE_EQ(Elapsed(), 0.75);
  rig_.Step(Join("a", 2));
  rig_.Step(Join("b", 1));
  rig_.StepAt(5000, JobResumed{JobId{1}});
  ToFormedAgain();
  EXPECT_DOUBLE_EQ(Elapsed(), 0.75);
}

TEST_F(JobSuspensionTest, EveryGroupIsOnRecordFromItsFirstRoundOn) {
  ToPaused();
  rig_.Step(JobResumed{JobId{1}});
  for (std::uint64_t worker = 4; worker <= 6; ++worker) rig_.Step(Said(worker, Ready()));

  const std::vector<GroupRecord>& groups = rig_.record().groups;

  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].generation, 1u);
  EXPECT_EQ(groups[0].first_round, 0u);
  ASSERT_THAT(groups[0].members, SizeIs(3));
  EXPECT_EQ(groups[0].members[1].worker, WorkerId{2});
  EXPECT_EQ(groups[0].members[1].node, "a");
  EXPECT_EQ(groups[1].generation, 2u);
  EXPECT_EQ(groups[1].first_round, rig_.record().progress.rounds);
  EXPECT_GT(groups[1].first_round, 0u);
  EXPECT_EQ(groups[1].members[0].worker, WorkerId{4});
}

TEST_F(JobSuspensionTest, OfManyFormerGroupsTheLatestStayOnRecord) {
  constexpr std::uint64_t kGroups = 200;
  rig_.ToFormed();
  for (std::uint64_t group = 1; group < kGroups; ++group) {
    rig_.Step(JobPaused{JobId{1}});
    for (std::uint64_t rank = 1; rank <= 3; ++rank) {
      rig_.Step(WorkerExited{.worker = WorkerId{3 * (group - 1) + rank}});
    }
    ASSERT_EQ(rig_.record().state, JobState::kPaused) << group << rig_.record().state_reason;
    rig_.Step(JobResumed{JobId{1}});
    for (std::uint64_t rank = 1; rank <= 3; ++rank) {
      rig_.Step(Said(3 * group + rank, Ready()));
    }
  }

  const std::vector<GroupRecord>& groups = rig_.record().groups;

  EXPECT_EQ(groups.back().generation, kGroups);
  EXPECT_THAT(groups, SizeIs(kFormerMembersMax / 3 + 1));
  EXPECT_EQ(groups.front().generation, kGroups - kFormerMembersMax / 3);
}

TEST_F(JobSuspensionTest, ADeadWorkerAfterTheCheckpointIsNoFailure) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});
  SayAllSuspended();
  StoreCheckpoint();

  rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 9});
  rig_.Step(NodeLost{.node = "a", .reason = "gone"});
  rig_.Step(NodeLost{.node = "b", .reason = "gone"});

  EXPECT_EQ(rig_.record().state, JobState::kPaused);
}

TEST_F(JobSuspensionTest, ADeadWorkerBeforeTheCheckpointCostsTheAttemptAndThePauseHolds) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});

  rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 9});
  ASSERT_EQ(rig_.record().state, JobState::kSuspending);
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 15});
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});

  EXPECT_EQ(rig_.record().state, JobState::kPaused);
  EXPECT_EQ(rig_.record().progress.rounds, 0u);
  EXPECT_EQ(rig_.record().suspensions, 0u) << "nothing was kept";
}

TEST_F(JobSuspensionTest, AJobThatEndsInTheSameRoundIsFinishedAndNotPaused) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});

  rig_.FinishAll();
  rig_.StoreAll();

  EXPECT_EQ(rig_.record().state, JobState::kSucceeded);
}

TEST_F(JobSuspensionTest, ACancelWhileItIsBeingSuspendedStillGivesAResult) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});

  const Actions cancelled = rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  ASSERT_THAT(Sent<StopMessage>(cancelled), SizeIs(3));
  EXPECT_FALSE(Sent<StopMessage>(cancelled)[0].suspend);
  rig_.FinishAll();
  rig_.StoreAll();
  EXPECT_EQ(rig_.record().state, JobState::kCancelled);
  EXPECT_TRUE(rig_.record().result.has_value());
}

TEST_F(JobSuspensionTest, ACancelOfAPausedJobKeepsItsCheckpointAsTheResult) {
  ToPaused();

  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  EXPECT_EQ(rig_.record().state, JobState::kCancelled);
  ASSERT_TRUE(rig_.record().result.has_value());
  EXPECT_EQ(rig_.record().result->artifacts.at(0).sha256, "c0ffee");
}

TEST_F(JobSuspensionTest, ARestartInTheMidstAsksAgainWhereTheCheckpointIsNotThereYet) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});

  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  const Actions back = rig_.Rejoin("b", 1, {WorkerId{3}});

  ASSERT_THAT(Sent<StopMessage>(back), SizeIs(3));
  EXPECT_TRUE(Sent<StopMessage>(back)[0].suspend);
  SayAllSuspended();
  StoreCheckpoint();
  ExitAll();
  EXPECT_EQ(rig_.record().state, JobState::kPaused);
}

TEST_F(JobSuspensionTest, ARestartForgetsNothingOfWhatWasSaidLast) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});
  SayAllSuspended();

  rig_.Restart();
  EXPECT_EQ(rig_.record().state, JobState::kSuspending);
  StoreCheckpoint();

  ASSERT_TRUE(rig_.record().checkpoint.has_value());
}

TEST_F(JobSuspensionTest, AStoredFileAndTheLastWordsOutliveARestart) {
  rig_.ToRunning();
  rig_.FinishAll();
  rig_.Step(ArtifactStored{JobId{1}, {.path = "model.pt", .size_bytes = 1}});

  rig_.Restart();
  rig_.Step(ArtifactStored{JobId{1}, {.path = "model.safetensors", .size_bytes = 1}});

  EXPECT_EQ(rig_.record().state, JobState::kSucceeded);
}

TEST_F(JobSuspensionTest, APauseWhileItStartsNeedsNoCheckpoint) {
  rig_.ToStarting();

  const Actions paused = rig_.Step(JobPaused{JobId{1}});

  EXPECT_THAT(Stopped(paused), SizeIs(3));
  ExitAll();
  EXPECT_EQ(rig_.record().state, JobState::kPaused);
  EXPECT_FALSE(rig_.record().checkpoint.has_value());
  EXPECT_EQ(Elapsed(), 0);
}

TEST_F(JobSuspensionTest, APauseWhileItStartsAgainKeepsTheTimeOfItsCheckpoint) {
  ToPaused();
  rig_.StepAt(5000, JobResumed{JobId{1}});
  ToFormedAgain();

  rig_.StepAt(6000, JobPaused{JobId{1}});
  for (std::uint64_t worker = 4; worker <= 6; ++worker) {
    rig_.Step(WorkerExited{.worker = WorkerId{worker}});
  }

  EXPECT_EQ(rig_.record().state, JobState::kPaused);
  EXPECT_DOUBLE_EQ(Elapsed(), 0.75);
}

TEST_F(JobSuspensionTest, AnotherBatchBoundIsInForceWithTheNextPlanWithoutARestart) {
  rig_.ToRunning();
  JobSettings settings = rig_.record().settings;
  settings.adapt.batch.per_worker = 64;

  const Actions updated = rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});
  EXPECT_THAT(Sent<StopMessage>(updated), IsEmpty());
  const Actions round = rig_.Round();

  const std::vector<policies::Plan> plans = PlansSent(round);
  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_EQ(plans[0].version, 2u);
  std::uint32_t sum = 0;
  for (const std::uint32_t size : plans[0].batch_sizes) sum += size;
  EXPECT_EQ(sum, 3u * 64u);
}

TEST_F(JobSuspensionTest, AChangeThatWorkersReadAtTheirStartRestartsThem) {
  rig_.ToRunning();

  const Actions updated = rig_.Step(JobUpdated{.job = JobId{1},
                                               .spec = "another",
                                               .settings = rig_.record().settings,
                                               .needs_restart = true});

  ASSERT_THAT(Sent<StopMessage>(updated), SizeIs(3));
  SayAllSuspended();
  StoreCheckpoint();
  const Actions exited = ExitAll();
  const std::vector<StartWorker> starts = Only<StartWorker>(exited);
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].spec, "another");
}

}  // namespace
}  // namespace tactus::job
