// What a job that is tried once makes of losses, and of a coordinator that restarts; job_retry_test
// has those that are tried again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// ---- Failing

TEST(JobFailureTest, AWorkersOwnFaultIsToldAtOnceWithItsField) {
  Rig rig;
  rig.ToStarting();

  const Actions actions = rig.Step(
      Said(2, FailedMessage{.field = "model.torchscript", .message = "m.pt: no such file"}));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason, "worker 2 on node a: m.pt: no such file");
  EXPECT_EQ(rig.record().error_field, "model.torchscript");
  EXPECT_THAT(Stopped(actions), SizeIs(3));
}

TEST(JobFailureTest, AConsequenceWaitsForItsCause) {
  Rig rig;
  rig.ToRunning();

  rig.Step(Said(1, FailedMessage{.message = "reset by peer", .lost_generation = 1}));
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(WorkerExited{.worker = WorkerId{3}, .signal = 9, .log_tail = "a\nout of memory\n"});
  rig.Step(Said(2, FailedMessage{.message = "reset by peer", .lost_generation = 1}));

  EXPECT_EQ(rig.record().state_reason,
            "worker 3 on node b was ended by signal 9 (SIGKILL): out of memory");
}

TEST(JobFailureTest, AJobOfWhichNobodyAnswersIsGivenUpAfterTheStallsTime) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  const double last = rig.seconds();

  for (int seconds = 3; seconds < 15 * 60; seconds += 2) rig.StepAt(last + seconds, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  EXPECT_EQ(rig.record().state_reason, "training on 3 workers");
  for (int seconds = 0; seconds < 70; seconds += 2) {
    rig.StepAt(last + 15 * 60 + seconds, Ticked{});
  }

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_THAT(rig.record().state_reason,
              HasSubstr("no worker says whom it waits for; no newer round for 9"));
}

TEST(JobFailureTest, AReportAfterTheCoordinatorStoodStillSavesTheJob) {
  Rig rig;
  rig.ToRunning();

  rig.StepAt(rig.seconds() + 3600, Ticked{});
  rig.Round();
  rig.StepAt(rig.seconds() + 60, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kRunning);
}

TEST(JobFailureTest, AConsequenceIsToldWhenNoCauseComesInTime) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Step(Said(1, FailedMessage{.message = "reset by peer", .lost_generation = 1}));
  const double said = rig.seconds();

  rig.StepAt(said + 1.9, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.StepAt(said + 2, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason, "worker 1 on node a lost its group: reset by peer");
}

TEST(JobFailureTest, AnExitWithoutAWordWaitsForABetterReason) {
  Rig rig;
  rig.ToRunning();

  rig.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = 1, .log_tail = "oops"});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(Said(3, FailedMessage{.field = "data.text", .message = "disk failed"}));

  EXPECT_EQ(rig.record().state_reason, "worker 3 on node b: disk failed");
}

TEST(JobFailureTest, ThereIsNothingToWaitForWhenAllHaveExited) {
  Rig rig(JobOnce(1));
  rig.ToRunning();

  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = 1, .log_tail = "oops"});
  }

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason, "worker 1 on node a ended with exit code 1: oops");
}

TEST(JobFailureTest, NoPlanIsSentWhileAFailureIsLookedInto) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Said(1, FailedMessage{.message = "reset by peer", .lost_generation = 1}));

  // Within the two seconds: enough rounds for the policy to want a change.
  Actions all;
  for (int i = 0; i < 6; ++i) {
    for (const Action& action : rig.Round()) all.push_back(action);
  }

  EXPECT_THAT(PlansSent(all), IsEmpty());
}

TEST(JobFailureTest, NobodyOnALostNodeIsAskedToStop) {
  Rig rig;
  rig.ToRunning();

  rig.Step(NodeLost{.node = "a", .reason = "no heartbeat for 5 s"});
  const Actions actions =
      rig.Step(Said(3, FailedMessage{.message = "reset by peer", .lost_generation = 1}));

  EXPECT_EQ(rig.record().state_reason, "node a was lost: no heartbeat for 5 s");
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{3}));
}

TEST(JobFailureTest, AnAgentThatRestartedHasLostItsWorkers) {
  Rig rig(JobOnce(1));
  rig.ToRunning();

  rig.Step(Join("a", 2));
  const Actions actions =
      rig.Step(Said(3, FailedMessage{.message = "reset by peer", .lost_generation = 1}));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_THAT(rig.record().state_reason, HasSubstr("the agent of node a restarted"));
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{3}));
}

TEST(JobFailureTest, AnAgentThatWasOnlyAwayChangesNothing) {
  Rig rig;
  rig.ToRunning();
  NodeJoined back = Join("a", 2);
  back.same_incarnation = true;
  back.running_workers = {WorkerId{1}};  // worker 2's StartWorker may still be on its way

  EXPECT_THAT(rig.Step(back), IsEmpty());
  EXPECT_EQ(rig.record().state, JobState::kRunning);
}

// ---- After a restart of the coordinator

TEST(JobRecoveryTest, ARunningJobGoesOnWhenAllAreBack) {
  Rig rig;
  rig.ToRunning();

  rig.Restart();
  EXPECT_THAT(rig.record().state_reason, HasSubstr("the coordinator restarted"));
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  const Actions actions = rig.Rejoin("b", 1, {WorkerId{3}});

  EXPECT_EQ(rig.record().state_reason, "training on 3 workers");
  EXPECT_THAT(Only<SendToWorker>(actions), IsEmpty());
  EXPECT_THAT(Only<PersistRound>(rig.Round()), SizeIs(1));
}

TEST(JobRecoveryTest, ThePlanInForceStays) {
  Rig rig;
  rig.ToRunning();
  while (PlansSent(rig.Round()).empty()) ASSERT_LT(rig.seconds(), 60);
  const policies::Plan newest = rig.record().newest_plan;

  rig.Restart();
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  const Actions actions = rig.Rejoin("b", 1, {WorkerId{3}});

  // It may have reached some of them; versions are known to workers, so it is sent to all again.
  EXPECT_THAT(PlansSent(actions), ElementsAre(newest, newest, newest));
  rig.Round(newest.version);
  EXPECT_EQ(rig.cluster().Find(JobId{1})->progress.plan, newest);
}

TEST(JobRecoveryTest, WhoDoesNotComeBackInTimeIsLost) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Restart();
  rig.Rejoin("b", 1, {WorkerId{3}});

  rig.StepAt(rig.seconds() + 3590, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  const Actions actions = rig.StepAt(rig.seconds() + 10, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason,
            "the coordinator restarted and worker 1 on node a, worker 2 on node a did not come "
            "back");
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{3}));
}

TEST(JobRecoveryTest, WhoIsAwayTrainsAsLongAsOthersTellOfNewRounds) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();
  rig.Rejoin("b", 1, {WorkerId{3}});

  for (int i = 0; i < 10; ++i) {
    rig.StepAt(rig.seconds() + 3000, Ticked{});
    rig.Step(Said(
        3, ReportOf(2, {.round = 10u + static_cast<unsigned>(i), .batch_sizes = {32, 32, 32}})));
  }
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});

  EXPECT_EQ(rig.record().state_reason, "training on 3 workers");
}

TEST(JobRecoveryTest, ACancelDoesNotWaitForWhoDoesNotComeBack) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();

  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .discard = true});
  rig.StepAt(rig.seconds() + 31, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
}

TEST(JobRecoveryTest, AMissingWorkerHasItsLastWordsFirst) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Restart();

  rig.Rejoin("b", 1, {});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(WorkerExited{.worker = WorkerId{3}, .signal = 9});
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.SilentAt(rig.seconds() + 3);

  EXPECT_EQ(rig.record().state_reason, "worker 3 on node b was ended by signal 9 (SIGKILL)");
}

TEST(JobRecoveryTest, AMissingWorkerWithoutLastWordsFailsTheJob) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.Rejoin("b", 1, {});

  rig.SilentAt(rig.seconds() + 2);

  EXPECT_EQ(rig.record().state_reason,
            "the coordinator restarted and worker 3 on node b did not come back");
}

TEST(JobRecoveryTest, AWorkerThatFinishedMeanwhileIsNotMissed) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.Rejoin("b", 1, {});

  rig.Step(Said(3, Finished(2)));
  rig.Step(WorkerExited{.worker = WorkerId{3}});
  rig.Step(Said(1, Finished(0)));
  rig.Step(Said(2, Finished(1)));
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobRecoveryTest, ACancelledJobIsStillCancelledAfterwards) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  rig.Restart();
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  const Actions actions = rig.Rejoin("b", 1, {WorkerId{3}});
  EXPECT_THAT(Sent<StopMessage>(actions), SizeIs(3));
  rig.FinishAll();
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
  EXPECT_EQ(rig.record().state_reason, "enough");
}

TEST(JobRecoveryTest, ACancelKeepsTheGraceThatTheUserGave) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .grace = std::chrono::seconds(7)});
  rig.Restart();
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.Rejoin("b", 1, {WorkerId{3}});

  rig.StepAt(rig.seconds() + 6, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.StepAt(rig.seconds() + 1, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
}

TEST(JobRecoveryTest, ACancelThatComesTooEarlyIsSentWhenAllAreBack) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();

  EXPECT_THAT(Sent<StopMessage>(rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"})),
              IsEmpty());
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});

  EXPECT_THAT(Sent<StopMessage>(rig.Rejoin("b", 1, {WorkerId{3}})), SizeIs(3));
  EXPECT_EQ(rig.record().state, JobState::kStopping);
}

TEST(JobRecoveryTest, AStartingJobIsQueuedAgainAndItsWorkersAreStopped) {
  Rig rig;
  rig.ToFormed();

  rig.Restart();
  EXPECT_EQ(rig.record().state, JobState::kQueued);
  const Actions joined = rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  EXPECT_THAT(Stopped(joined), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_THAT(Only<StartWorker>(joined), IsEmpty());
  rig.Step(WorkerExited{.worker = WorkerId{1}});
  const Actions actions = rig.Step(WorkerExited{.worker = WorkerId{2}});

  const std::vector<StartWorker> starts = Only<StartWorker>(actions);
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].worker, WorkerId{4});  // above all ids on record
  rig.Step(Said(4, Ready()));
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(rig.Step(Said(5, Ready())));
  EXPECT_EQ(groups.at(0).generation, 2u);
  EXPECT_EQ(groups.at(0).plan.version, 2u);
}

}  // namespace
}  // namespace tactus::job
