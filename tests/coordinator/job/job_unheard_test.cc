// What a job makes of nodes that are not heard: nothing, as long as they may live.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

NodeUnreachable Miss(const std::string& node) {
  return {.node = node, .reason = "not heard for 10 s"};
}

NodeJoined Back(const std::string& node, int cpus, std::vector<WorkerId> running) {
  NodeJoined back = Join(node, cpus);
  back.same_incarnation = true;
  back.running_workers = std::move(running);
  return back;
}

// Worker 3, alone on node b, reports a round of a group whose others are not heard.
WorkerSaid ThirdReports(std::uint64_t round) {
  return Said(3, ReportOf(2, {.round = round, .batch_sizes = {32, 32, 32}}));
}

// Worker 1, alone with worker 2 on node a, says that the group validated.
WorkerSaid Validated(std::uint64_t rounds, double seconds) {
  return Said(1, ValidatedMessage{.generation = 1,
                                  .rounds = rounds,
                                  .loss = 1.5,
                                  .samples = 10,
                                  .seconds = seconds,
                                  .best_loss = 1.5,
                                  .best_samples = 10,
                                  .best_rounds = rounds});
}

TEST(JobUnheardTest, NobodyIsLostWhileRoundsGoOn) {
  Rig rig;
  rig.ToRunning();

  EXPECT_THAT(Stopped(rig.Step(Miss("a"))), IsEmpty());
  EXPECT_EQ(rig.record().state_reason, "training on 3 workers; not heard: node a");
  for (std::uint64_t round = 1; round < 1000; ++round) {
    rig.StepAt(rig.seconds() + 29, Ticked{});
    rig.Step(ThirdReports(round));
  }
  const Actions back = rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));

  EXPECT_EQ(rig.record().state, JobState::kRunning);
  EXPECT_EQ(rig.record().state_reason, "training on 3 workers");
  EXPECT_THAT(Stopped(back), IsEmpty());
}

TEST(JobUnheardTest, WhereRoundsStopAndAWitnessIsHeardTheMembersAreLost) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Step(Miss("a"));
  const double since = rig.seconds();

  rig.StepAt(since + 30, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);  // at the first look
  rig.StepAt(since + 39.9, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  const Actions actions = rig.StepAt(since + 40, Ticked{});
  // When it is heard again.
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  // The witness does not say that it could go on.
  EXPECT_THAT(Stopped(rig.SilentAt(since + 43)), ElementsAre(WorkerId{3}));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason,
            "node a was lost: not heard for 10 s, and no newer round came for 30 seconds");
}

TEST(JobUnheardTest, AReportOfARoundThatIsNotNewerProvesNothing) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Step(ThirdReports(7));
  rig.Step(Miss("a"));
  const double since = rig.seconds();

  for (int i = 1; i < 40; ++i) rig.StepAt(since + i, ThirdReports(7));
  rig.StepAt(since + 30, Ticked{});
  rig.StepAt(since + 40, Ticked{});
  rig.SilentAt(since + 43);

  EXPECT_EQ(rig.record().state, JobState::kFailed);
}

TEST(JobUnheardTest, LongRoundsHaveTheirTime) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ReportMessage slow = ReportOf(rank, {.round = 1, .batch_sizes = {32, 32, 32}});
    slow.report.round_seconds = 100;
    rig.StepAt(rig.seconds() + 10, Said(rank + 1, slow));
  }
  rig.Step(Miss("a"));
  const double since = rig.seconds();

  rig.StepAt(since + 1900, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.StepAt(since + 2000, Ticked{});
  rig.StepAt(since + 2010, Ticked{});
  rig.SilentAt(since + 2070);

  EXPECT_EQ(rig.record().state, JobState::kFailed);
}

// No round ends while the group validates.
TEST(JobUnheardTest, AValidationHasItsTime) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.StepAt(rig.seconds() + 2, Validated(1, 59.5));
  rig.Step(Miss("b"));
  const double since = rig.seconds();

  rig.StepAt(since + 90, Ticked{});
  rig.StepAt(since + 99, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.StepAt(since + 100.5, Ticked{});
  rig.SilentAt(since + 222);

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_THAT(rig.record().state_reason, HasSubstr("and no newer round came for 90 seconds"));
}

TEST(JobUnheardTest, AValidationProvesThatAllLiveAndAnOldOneNothing) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Round();
  rig.Step(Miss("b"));
  const double since = rig.seconds();

  rig.StepAt(since + 25, Validated(2, 0));
  rig.StepAt(since + 31, Ticked{});
  rig.StepAt(since + 42, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.StepAt(since + 50, Validated(2, 0));
  rig.StepAt(since + 51, Validated(1, 0));
  rig.StepAt(since + 55, Ticked{});
  rig.StepAt(since + 66, Ticked{});
  rig.SilentAt(since + 69);

  EXPECT_EQ(rig.record().state, JobState::kFailed);
}

TEST(JobUnheardTest, ACoordinatorThatStoodStillItselfLooksTwice) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));

  rig.StepAt(rig.seconds() + 1000, Ticked{});
  rig.Step(ThirdReports(900));
  rig.StepAt(rig.seconds() + 11, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kRunning);
}

TEST(JobUnheardTest, WhereNobodyIsHeardTheJobIsHeld) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));
  rig.Step(Miss("b"));
  EXPECT_THAT(rig.record().state_reason, HasSubstr("of which none is heard"));
  const double since = rig.seconds();

  // Longer than the job may stand still while somebody is heard.
  rig.StepAt(since + 3599, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(Back("b", 1, {WorkerId{3}}));
  rig.StepAt(rig.seconds() + 1, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));

  EXPECT_EQ(rig.record().state_reason, "training on 3 workers");
  EXPECT_THAT(Only<PersistRound>(rig.Round()), SizeIs(1));
}

TEST(JobUnheardTest, AHoldHasAnEndThatTheJobNames) {
  JobRecord job = JobOnce(1);
  job.settings.hold = Seconds(60);
  Rig rig(job);
  rig.ToRunning();
  rig.Step(Miss("b"));
  rig.Step(Miss("a"));
  const double since = rig.seconds();

  rig.StepAt(since + 60, Ticked{});
  const Actions actions = rig.StepAt(since + 70, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_THAT(rig.record().state_reason, HasSubstr("nor any other node of the job for 1 minute"));
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST(JobUnheardTest, WhoeverIsHeardFirstAgainHasTimeToTell) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));
  rig.Step(Miss("b"));
  rig.StepAt(rig.seconds() + 1000, Back("b", 1, {WorkerId{3}}));

  rig.StepAt(rig.seconds() + 29, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kRunning);
}

TEST(JobUnheardTest, AStartingJobsTimeStandsStillWhileNobodyIsHeard) {
  Rig rig(JobOnce(1));
  rig.ToStarting();
  rig.StepAt(500, Miss("a"));
  rig.Step(Miss("b"));

  rig.StepAt(2000, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStarting);
  rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));
  rig.Step(Back("b", 1, {WorkerId{3}}));
  rig.StepAt(2090, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStarting);
  rig.StepAt(2110, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_THAT(rig.record().state_reason, HasSubstr("not ready within 10 minutes"));
}

TEST(JobUnheardTest, AJobThatStartsOnANodeThatIsNotHeardStartsOnOthers) {
  Rig rig(JobOnce(1));
  rig.ToStarting();
  rig.Step(Miss("b"));
  rig.StepAt(rig.seconds() + 31, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStarting);

  rig.StepAt(rig.seconds() + 11, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  EXPECT_EQ(rig.record().state_reason, "node b is lost: not heard for 10 s; starts on others");
  rig.Step(WorkerExited{.worker = WorkerId{1}});
  rig.Step(WorkerExited{.worker = WorkerId{2}});

  EXPECT_EQ(rig.record().state, JobState::kStarting);
  EXPECT_EQ(rig.record().fruitless, 0U);
  ASSERT_EQ(rig.record().members.size(), 2U);
  for (const MemberRecord& member : rig.record().members) EXPECT_EQ(member.node, "a");
}

// Its member never learned of the others and gave up, for which they lose the group, too.
TEST(JobUnheardTest, SoDoesOneThatDidNotMeetAndNoAttemptIsLost) {
  JobSettings settings = {.workers_min = 1, .workers_max = 3, .retries = 0};
  Rig rig(Job(1, settings));
  rig.ToFormed();
  rig.Step(Miss("b"));
  rig.Step(Said(1, GroupLostMessage{.generation = 1, .reason = "a member ended"}));
  rig.Step(Said(2, GroupLostMessage{.generation = 1, .reason = "a member ended"}));

  rig.StepAt(rig.seconds() + 3, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  EXPECT_EQ(rig.record().state_reason, "node b is lost: not heard for 10 s; starts on others");
  EXPECT_EQ(rig.record().fruitless, 0u);
}

TEST(JobUnheardTest, TheFilesOfAResultAreWaitedForWhileTheirNodeIsNotHeard) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();
  rig.Step(Miss("a"));

  rig.StepAt(rig.seconds() + 3000, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.Step(Back("a", 2, {}));
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobUnheardTest, TheFilesOfAResultAreWaitedForAfterARestart) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();
  rig.Restart();

  rig.StepAt(rig.seconds() + 3000, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

// Trains on node a, whose agent process has a name, and b. Returns that agent's Hello.
NodeJoined TrainWithNamedAgent(Rig& rig) {
  NodeJoined a = Join("a", 2);
  a.incarnation = 77;
  rig.Step(a);
  rig.Step(Join("b", 1));
  rig.Step(JobSubmitted{JobOnce(1)});
  for (std::uint64_t worker = 1; worker <= 3; ++worker) rig.Step(Said(worker, Ready()));
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig.Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e"}));
  }
  rig.Round();
  return a;
}

TEST(JobUnheardTest, AnUploadOutlivesTheCoordinatorsRestartAndItsWorker) {
  Rig rig;
  NodeJoined a = TrainWithNamedAgent(rig);
  rig.FinishAll();
  rig.Restart();

  a.running_workers = {};
  rig.Step(a);  // worker 1 has exited, which the former coordinator was told
  rig.StepAt(rig.seconds() + 300, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

// Their words wait at the agent while the disk of the coordinator is full, say.
TEST(JobUnheardTest, WorkersThatEndedDuringARestartAreJudgedByWhatTheirAgentHasToTell) {
  Rig rig;
  NodeJoined a = TrainWithNamedAgent(rig);
  rig.Restart();
  a.ended_workers = {WorkerId{1}, WorkerId{2}};
  rig.Step(a);
  rig.Rejoin("b", 1, {WorkerId{3}});

  rig.StepAt(rig.seconds() + 60, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.FinishAll();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig.Step(WorkerExited{.worker = WorkerId{worker}});
  }
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobUnheardTest, WorkersOfWhichTheirAgentHasNothingMoreToTellAreLost) {
  Rig rig;
  NodeJoined a = TrainWithNamedAgent(rig);
  rig.Restart();
  rig.Step(a);
  rig.Rejoin("b", 1, {WorkerId{3}});

  rig.SilentAt(rig.seconds() + 3);

  EXPECT_EQ(rig.record().state, JobState::kFailed);
}

TEST(JobUnheardTest, AHoldThatBeginsWithTheEndIsNoPartOfItsLimit) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));
  rig.Step(JobPaused{.job = JobId{1}});
  rig.StepAt(rig.seconds() + 1000, Ticked{});
  rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));

  rig.StepAt(rig.seconds() + 60, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
}

TEST(JobUnheardTest, AHoldIsNoPartOfALimitWhoeverComesBackFirst) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobPaused{.job = JobId{1}});
  rig.Step(Miss("a"));
  rig.Step(Miss("b"));
  rig.StepAt(rig.seconds() + 1000, Ticked{});
  rig.Step(Back("b", 1, {WorkerId{3}}));
  rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));

  rig.StepAt(rig.seconds() + 60, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  EXPECT_EQ(rig.record().state_reason, "paused by the user");
}

TEST(JobUnheardTest, WhoIsPausedWhileNobodyIsHeardLeavesItsDevices) {
  Rig rig;
  rig.ToStarting();
  rig.Step(Miss("a"));
  rig.Step(Miss("b"));
  rig.Step(JobPaused{.job = JobId{1}});
  ASSERT_EQ(rig.record().state, JobState::kPaused);
  rig.Step(JobResumed{.job = JobId{1}});
  rig.Rejoin("a", 2, {});
  rig.Rejoin("b", 1, {});

  rig.StepAt(rig.seconds() + 10, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kStarting);
}

TEST(JobUnheardTest, ACancelIsNotHeldUp) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));
  rig.Step(Miss("b"));

  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .discard = true});
  rig.StepAt(rig.seconds() + 30, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
}

TEST(JobUnheardTest, AJobIsNotMovedWhileSomeOfItIsNotHeard) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Miss("a"));

  rig.Step(NodeMarked{.node = {.name = "b", .cordoned = true, .draining = true}});
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  const Actions asked = rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}));

  ASSERT_EQ(Sent<StopMessage>(asked).size(), 3u);
  EXPECT_EQ(Sent<StopMessage>(asked)[0].reason, "node b is drained");
}

TEST(JobUnheardTest, WhoMissedWhatWasSaidIsToldAgain) {
  Rig rig;
  rig.ToRunning();
  while (PlansSent(rig.Round()).empty()) ASSERT_LT(rig.seconds(), 60);
  const policies::Plan newest = rig.record().newest_plan;
  rig.Step(Miss("a"));
  NodeJoined back = Back("a", 2, {WorkerId{1}, WorkerId{2}});
  back.same_incarnation = false;  // the session was not kept

  EXPECT_THAT(PlansSent(rig.Step(back)), ElementsAre(newest, newest));
  EXPECT_EQ(rig.record().state, JobState::kRunning);
  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});
  EXPECT_THAT(Sent<StopMessage>(rig.Step(back)), SizeIs(2));
}

TEST(JobUnheardTest, WhoWasGivenUpAndComesBackIsStopped) {
  Rig rig(JobOnce(1));
  rig.ToRunning();
  rig.Step(Miss("a"));
  rig.Step(Said(3, FailedMessage{.message = "training diverged"}));
  EXPECT_EQ(rig.record().state, JobState::kFailed);

  EXPECT_THAT(Stopped(rig.Step(Back("a", 2, {WorkerId{1}, WorkerId{2}}))),
              ElementsAre(WorkerId{1}, WorkerId{2}));
}

TEST(JobUnheardTest, ASuspendedJobWaitsForNobodyWhoIsNotHeard) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobPaused{.job = JobId{1}});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    FinishedMessage finished = Finished(rank);
    finished.suspended = true;
    finished.files =
        rank == 0 ? std::vector<std::string>{kCheckpointFile} : std::vector<std::string>{};
    rig.Step(Said(rank + 1, finished));
  }
  rig.Step(Miss("b"));
  rig.Step(ArtifactStored{.job = JobId{1},
                          .artifact = {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "ab"}});
  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  rig.Step(WorkerExited{.worker = WorkerId{1}});
  rig.Step(WorkerExited{.worker = WorkerId{2}});

  rig.StepAt(rig.seconds() + 31, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kPaused);
  EXPECT_EQ(rig.cluster().membership().HolderOf("b", "cpu:0"), nullptr);
}

}  // namespace
}  // namespace tactus::job
