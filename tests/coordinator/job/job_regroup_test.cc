// A group that falls apart under workers who go on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/regroup_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(JobRegroupTest, TheOthersGoOnAtOnceFromTheRoundThatTheyAreIn) {
  Kill(3);
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().state_reason, std::string("regrouping: ") + kThirdKilled);
  EXPECT_THAT(Sent<GroupMessage>(Lose(1, 8)), IsEmpty()) << "of one nobody heard yet";
  const Actions formed = Lose(2, 7);

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(formed);
  ASSERT_THAT(groups, SizeIs(2));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(groups[rank].generation, 2u);
    EXPECT_EQ(groups[rank].rank, rank);
    EXPECT_EQ(groups[rank].size, 2u);
    EXPECT_THAT(groups[rank].rounds, ElementsAre(8u, 7u));
    EXPECT_THAT(groups[rank].nodes, ElementsAre(0u, 0u));
  }
  EXPECT_THAT(Stopped(formed), IsEmpty());
  EXPECT_EQ(record().state_reason,
            std::string("regrouping: ") + kThirdKilled + "; 2 of 3 workers go on from round 8");
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_EQ(record().generation, 2u);
  EXPECT_THAT(Sent<PeersMessage>(Meet()), SizeIs(2));
  Report(8);

  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().state_reason, "training on 2 workers");
  EXPECT_EQ(record().regroups, 1u);
  EXPECT_EQ(record().regroup_reason, kThirdKilled);
  EXPECT_THAT(record().lost, IsEmpty());
  Wait(1);
  Report(9);
  EXPECT_EQ(present().progress.rounds, 10u);
  ASSERT_THAT(record().attempts, SizeIs(1));
  EXPECT_EQ(record().attempts[0].end_time, 0);
  EXPECT_EQ(record().attempts[0].workers, 2u);
  ASSERT_THAT(record().groups, SizeIs(2));
  EXPECT_EQ(record().groups[1].generation, 2u);
}

// What an encoding leaves with a member is the member's own.
TEST(JobOfResidualsTest, ALossTakesOneAlong) {
  JobRecord job = JobOnce(1);
  job.settings.adapt.encoding_policy = "adacomp";
  Rig rig(job);
  ReadyMessage ready = Ready();
  ready.encodings = {"adacomp"};
  rig.ToStarting();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) rig.Step(Said(worker, ready));
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig.Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e"}));
  }
  rig.Round();

  rig.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 9});
  for (const std::uint64_t worker : {1, 2}) {
    rig.Step(Said(worker, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "reset"}));
  }

  EXPECT_EQ(rig.record().regroup_reason,
            std::string(kThirdKilled) + "; what adacomp had left out there is lost");
}

TEST_F(JobRegroupTest, TheMembersAreDurableBeforeTheyHearOfIt) {
  Kill(3);
  Lose(1);
  const Actions formed = Lose(2);

  bool durable = false;
  for (const Action& action : formed) {
    const auto* persist = std::get_if<PersistJob>(&action);
    if (persist != nullptr) durable = persist->record.members.size() == 2;
    if (std::holds_alternative<SendToWorker>(action)) {
      EXPECT_TRUE(durable);
    }
  }
}

TEST_F(JobRegroupTest, WhoIsGoneMayBeKnownLast) {
  Lose(1);
  Lose(2);
  EXPECT_THAT(record().state_reason, HasSubstr("worker 1 on node a lost its group"));

  EXPECT_THAT(Sent<GroupMessage>(Kill(3)), SizeIs(2));
  EXPECT_EQ(record().regroup_reason, kThirdKilled);
}

TEST_F(JobRegroupTest, TheNodeOfSomeMayBeLost) {
  Lose(3);
  const Actions formed = rig_.Step(NodeLost{.node = "a", .reason = "its agent was started again"});

  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_EQ(record().state_reason,
            "regrouping: node a was lost: its agent was started again; 1 of 3 workers goes on from "
            "round 1");
  EXPECT_EQ(rig_.cluster().membership().HolderOf("a", "cpu:0"), nullptr);
  EXPECT_NE(rig_.cluster().membership().HolderOf("b", "cpu:0"), nullptr);
}

TEST_F(JobRegroupTest, WhatAWorkerSaysOfItsDeviceCostsThatWorkerAlone) {
  rig_.Step(
      Said(3, FailedMessage{.message = "cuda:0: uncorrectable ECC error", .transient = true}));
  Lose(1);
  const Actions formed = Lose(2);

  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(2));
  EXPECT_EQ(record().regroup_reason, "worker 3 on node b: cuda:0: uncorrectable ECC error");
  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{3}));
  EXPECT_NE(rig_.cluster().membership().HolderOf("b", "cpu:0"), nullptr) << "until it is gone";
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = 1});
  EXPECT_EQ(rig_.cluster().membership().HolderOf("b", "cpu:0"), nullptr);
}

TEST_F(JobRegroupTest, TheJobsOwnWordsFailItStill) {
  Kill(3);
  Lose(1);
  rig_.Step(Said(2, FailedMessage{.message = "training diverged: the loss is nan"}));

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason, "worker 2 on node a: training diverged: the loss is nan");
}

TEST_F(JobRegroupTest, ThePlanGoesOnWithTheSizesOfThoseWhoStay) {
  while (PlansSent(rig_.Round()).empty()) ASSERT_LT(rig_.seconds(), 60);
  const policies::Plan before = record().newest_plan;
  rig_.Round(before.version);

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Regroup());

  ASSERT_THAT(groups, SizeIs(2));
  const policies::Plan& plan = groups[0].plan;
  EXPECT_EQ(plan.version, before.version + 1);
  EXPECT_THAT(plan.batch_sizes, ElementsAre(before.batch_sizes[0], before.batch_sizes[1]));
  EXPECT_EQ(plan.synchronization, before.synchronization);
  EXPECT_THAT(plan.reason, HasSubstr("goes on as it was in the group before"));
}

TEST_F(JobRegroupTest, WhatIsReportedOfTheFormerGroupCountsNoMore) {
  rig_.Step(Said(1, ReportOf(0, {.round = 1, .batch_sizes = {32, 32, 32}})));
  Regroup();
  const std::uint64_t rounds = present().progress.rounds;

  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    rig_.Step(Said(rank + 1, ReportOf(rank, {.round = 1, .batch_sizes = {32, 32, 32}})));
  }

  EXPECT_EQ(present().progress.rounds, rounds);
  EXPECT_EQ(record().state_reason.substr(0, 10), "regrouping");
}

// ---- Nobody is gone

TEST_F(JobRegroupTest, WhereAConnectionBrokeTheSameGoOnAfterAMoment) {
  Lose(1);
  Lose(2);
  Lose(3);
  EXPECT_THAT(Sent<GroupMessage>(Wait(1)), IsEmpty());
  EXPECT_THAT(Sent<GroupMessage>(Wait(1)), SizeIs(3));

  EXPECT_THAT(record().state_reason, HasSubstr("; 3 of 3 workers go on from round 1"));
}

TEST_F(JobRegroupTest, WhatKeepsBreakingIsLostAsEver) {
  for (int time = 0; time < 4; ++time) {
    for (std::uint64_t worker = 1; worker <= 3; ++worker) Lose(worker);
    EXPECT_THAT(Sent<GroupMessage>(Wait(2)), SizeIs(3)) << time;
    Meet();
  }
  for (std::uint64_t worker = 1; worker <= 3; ++worker) Lose(worker);
  Wait(2);

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().regroups, 4u);
}

TEST_F(JobRegroupTest, ARoundBetweenBeginsTheCountAnew) {
  for (int time = 0; time < 6; ++time) {
    for (std::uint64_t worker = 1; worker <= 3; ++worker) Lose(worker);
    EXPECT_THAT(Sent<GroupMessage>(Wait(2)), SizeIs(3)) << time;
    Meet();
    Report(1u + static_cast<unsigned>(time));
  }

  EXPECT_EQ(record().state, JobState::kRunning);
}

TEST_F(JobRegroupTest, OfTwoWhoKeepLosingEachOtherTheSlowerIsLeftOut) {
  const auto lose = [this] {
    Lose(1, 1, {2});
    Lose(2);
    Lose(3, 1, {0});
    return Wait(2);
  };
  EXPECT_THAT(Sent<GroupMessage>(lose()), SizeIs(3)) << "it may have been a moment's trouble";
  Meet();
  const Actions formed = lose();

  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(2));
  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{3}));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
}

// ---- Some say nothing

TEST_F(JobRegroupTest, WhoSaysNothingIsEndedAndLeftOut) {
  Kill(3);
  Lose(1);
  // Four rounds of 0.65 s, rounded up.
  EXPECT_THAT(Sent<GroupMessage>(Wait(2.7)), IsEmpty());
  const Actions formed = rig_.SilentAt(rig_.seconds() + 0.3);

  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{2}));
  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}));
  EXPECT_NE(rig_.cluster().membership().HolderOf("a", "cpu:1"), nullptr) << "until it is gone";
  rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 15});
  EXPECT_EQ(rig_.cluster().membership().HolderOf("a", "cpu:1"), nullptr);
}

// The control stream of its agent is broken, for less time than a node has until it is unheard.
TEST_F(JobRegroupTest, WhoseAgentDoesNotAnswerIsNotToBlame) {
  Kill(3);
  Lose(1);
  for (int looks = 0; looks < 12; ++looks) {
    const Actions actions = Wait(looks == 0 ? 3.1 : 2.1);
    EXPECT_THAT(Stopped(actions), IsEmpty());
    EXPECT_THAT(Only<LookAtWorker>(actions), SizeIs(1)) << "an answer may get lost";
  }

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
}

// On a machine that is loaded, or while it writes to a disk that is slow.
TEST_F(JobRegroupTest, WhoDoesSomethingMaySayItLater) {
  Kill(3);
  Lose(1);
  for (int looks = 0; looks < 12; ++looks) {
    const Actions actions = Wait(looks == 0 ? 3.1 : 2.1);
    EXPECT_THAT(Stopped(actions), IsEmpty()) << looks;
    StandingMessage standing{.generation = 1};
    if (looks % 3 == 0) standing.storage = true;
    standing.processor_seconds = 0.2 * looks;
    for (const LookAtWorker& look : Only<LookAtWorker>(actions)) {
      rig_.Step(Said(look.worker.value, standing));
    }
  }

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
}

// That of the look before may come with the next one's.
TEST_F(JobRegroupTest, TwoAnswersAtOnceDoNotSayThatItStandsStill) {
  Kill(3);
  Lose(1);
  Wait(3.1);
  for (int answers = 0; answers < 2; ++answers) rig_.Step(Said(2, StandingMessage{}));

  EXPECT_THAT(Stopped(Wait(2.1)), IsEmpty());
  rig_.Step(Said(2, StandingMessage{}));
  EXPECT_THAT(Stopped(Wait(2.1)), ElementsAre(WorkerId{2}));
}

TEST_F(JobRegroupTest, WhoIsStoppedNeedsNoSecondLook) {
  Kill(3);
  Lose(1);
  Wait(3.1);
  rig_.Step(Said(2, StandingMessage{.stopped = true}));

  EXPECT_THAT(Stopped(Wait(2.1)), ElementsAre(WorkerId{2}));
}

TEST_F(JobRegroupTest, WhoMayBeChoosingSamplesHasTheTimeForIt) {
  rig_.Step(Said(1, SelectedMessage{.generation = 1, .rounds = 1, .number = 1, .seconds = 5}));
  Kill(3);
  Lose(1);
  EXPECT_THAT(Stopped(Wait(9)), IsEmpty());

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
}

TEST_F(JobRegroupTest, AnAnswerIsNotAwaitedForEver) {
  Kill(3);
  Lose(1);
  Wait(3.1);
  for (int looks = 0; looks < 14; ++looks) EXPECT_THAT(Stopped(Wait(2.1)), IsEmpty());

  EXPECT_THAT(Stopped(Wait(2.1)), ElementsAre(WorkerId{2}));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}));
}

// Also where one of them has not been in a round with the others.
TEST_F(JobRegroupTest, WhoWasToldOfOtherRoundsIsToldAnewAndNobodyIsLeftOut) {
  Kill(3);
  Lose(1, 3);
  Lose(2, 0);
  rig_.Step(Said(1, GroupLostMessage{.generation = 1, .rounds = 4, .reason = "reset by peer"}));
  Meet();

  EXPECT_EQ(record().generation, 3u);
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_EQ(record().lost[0].message.rounds, 4u);
}

// Who has what the job has learned is gone, and who is left came to nothing with it.
TEST_F(JobRegroupTest, WhereOnlyNewcomersAreLeftTheyDoNotGoOnFromNothing) {
  Kill(3);
  Lose(1, 5);
  Lose(2, 0);
  Meet();
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 9});
  Lose(2, 0);

  EXPECT_THAT(Members(), Not(ElementsAre(WorkerId{2})));
  EXPECT_NE(record().state, JobState::kRunning);
}

// So does a spare that was a member: what it has is of the time when it left the others.
TEST_F(JobRegroupTest, NorDoesOneWhoIsRoundsBehindGoOnAlone) {
  Kill(3);
  Lose(1, 5);
  Lose(2, 3);
  Meet();
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 9});
  Lose(2, 3);

  EXPECT_THAT(Members(), Not(ElementsAre(WorkerId{2})));
  EXPECT_NE(record().state, JobState::kRunning);
}

TEST_F(JobRegroupTest, WhoMayBeValidatingHasTheTimeForIt) {
  rig_.Step(Said(1, ValidatedMessage{.generation = 1, .rounds = 1, .samples = 10, .seconds = 5}));
  Kill(3);
  Lose(1);
  EXPECT_THAT(Stopped(Wait(9)), IsEmpty());

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
}

TEST_F(JobRegroupTest, WhoGivesNoAddressIsEndedAndLeftOut) {
  Regroup();
  rig_.Step(Said(2, EndpointMessage{.generation = 2, .endpoint = "e"}));
  const Actions formed = rig_.SilentAt(rig_.seconds() + 3);

  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{1}));
  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_EQ(Sent<GroupMessage>(formed)[0].generation, 3u);
  EXPECT_THAT(Members(), ElementsAre(WorkerId{2}));
}

TEST_F(JobRegroupTest, WhereNobodySaysAnythingTheAttemptIsLost) {
  Kill(3);
  rig_.SilentAt(rig_.seconds() + 3);

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason, kThirdKilled);
}

TEST_F(JobRegroupTest, WorkersThatCannotGoOnSaySoAndTheAttemptIsLostAtOnce) {
  Kill(3);
  rig_.Step(Said(1, FailedMessage{.message = "reset by peer", .lost_generation = 1}));
  EXPECT_EQ(record().state, JobState::kRunning);
  rig_.Step(Said(2, FailedMessage{.message = "reset by peer", .lost_generation = 1}));

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason, kThirdKilled);
}

TEST_F(JobRegroupTest, WhoCannotGoOnIsLeftOut) {
  rig_.Step(Said(3, FailedMessage{.message = "must end", .lost_generation = 1}));
  Lose(1);

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
}

TEST_F(JobRegroupTest, ACoordinatorThatStoodStillListensFirst) {
  Kill(3);
  Lose(1);
  EXPECT_THAT(Stopped(Wait(100)), IsEmpty());

  EXPECT_THAT(Sent<GroupMessage>(Lose(2)), SizeIs(2));
}

TEST_F(JobRegroupTest, WhoIsNotHeardHasItsTime) {
  rig_.Step(NodeUnreachable{.node = "a", .reason = "no heartbeat"});
  Lose(3);
  for (int i = 0; i < 10; ++i) Wait(2.5);
  EXPECT_THAT(Members(), SizeIs(3));
  NodeJoined back = Join("a", 2);
  back.same_incarnation = true;
  back.running_workers = {WorkerId{1}, WorkerId{2}};
  rig_.Step(back);
  Lose(1);
  Lose(2);

  EXPECT_THAT(Sent<GroupMessage>(Wait(2)), SizeIs(3)) << "ten seconds of network cost no worker";
}

TEST_F(JobRegroupTest, WhoIsNotHeardForLongIsLeftOut) {
  rig_.Step(NodeUnreachable{.node = "a", .reason = "no heartbeat"});
  Lose(3);
  Actions formed;
  for (int i = 0; i < 40 && Sent<GroupMessage>(formed).empty(); ++i) formed = Wait(2.5);

  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{1}, WorkerId{2})) << "when they are heard";
  EXPECT_THAT(Members(), ElementsAre(WorkerId{3}));
}

// ---- More are lost meanwhile

TEST_F(JobRegroupTest, OneLostBeforeTheyMeetLeavesTheRest) {
  Regroup();
  const Actions formed = Kill(1);

  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_EQ(Sent<GroupMessage>(formed)[0].generation, 3u);
  EXPECT_THAT(Sent<GroupMessage>(formed)[0].rounds, ElementsAre(1u));
}

TEST_F(JobRegroupTest, NorDoesOneLostWhileTheyMeetHoldThemUp) {
  Regroup();
  Meet();
  const Actions formed = Kill(1);

  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_EQ(Sent<GroupMessage>(formed)[0].generation, 3u);
}

TEST_F(JobRegroupTest, WhoHasGoneOnMeanwhileSaysSoBeforeAnybodyMeets) {
  Regroup();
  Meet();
  Kill(1);
  rig_.Step(Said(2, GroupLostMessage{.generation = 2, .rounds = 4, .reason = "overtaken"}));
  const Actions formed = rig_.Step(Said(2, EndpointMessage{.generation = 3, .endpoint = "e"}));

  EXPECT_THAT(Sent<PeersMessage>(formed), IsEmpty());
  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_EQ(Sent<GroupMessage>(formed)[0].generation, 4u);
  EXPECT_THAT(Sent<GroupMessage>(formed)[0].rounds, ElementsAre(4u));
}

TEST_F(JobRegroupTest, WhereNobodyIsLeftTheAttemptIsLost) {
  Regroup();
  Kill(1);
  Kill(2);

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason, "worker 2 on node a was ended by signal 9 (SIGKILL)");
}

TEST_F(JobRegroupTest, ALateWordOfTheFormerGroupDoesNothing) {
  Regroup();
  const std::uint64_t revision = record().revision;

  rig_.Step(Said(1, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "again"}));
  rig_.Step(Said(3, GroupLostMessage{.generation = 2, .rounds = 1, .reason = "of a stranger"}));

  EXPECT_EQ(record().revision, revision);
}

// ---- Who stands still

TEST_F(JobRegroupTest, WhoStandsStillIsEndedAndTheOthersGoOn) {
  Actions ended;
  for (int i = 0; i < 200 && Stopped(ended).empty(); ++i) {
    const Actions looked = Wait(2);
    ended = looked;
    for (const LookAtWorker& look : Only<LookAtWorker>(looked)) {
      const bool third = look.worker == WorkerId{3};
      rig_.Step(Said(look.worker.value,
                     StandingMessage{.waits = !third, .awaits = {2}, .stopped = third}));
    }
  }
  EXPECT_THAT(Stopped(ended), ElementsAre(WorkerId{3}));
  EXPECT_EQ(record().state, JobState::kRunning);
  Kill(3);
  Lose(1);
  Lose(2);

  EXPECT_THAT(record().regroup_reason,
              HasSubstr("worker 3 on node b stands still: its process is stopped"));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
}

// ---- Fewer than the job's min; more again

class JobOfThreeRegroupTest : public JobRegroupTest {
 protected:
  JobOfThreeRegroupTest()
      : JobRegroupTest(Job(1, {.workers_min = 3, .workers_max = 3, .retries = 0})) {}
};

TEST_F(JobOfThreeRegroupTest, TooFewTakeACheckpointAndWaitInTheQueue) {
  Regroup();
  Meet();
  const Actions met = Report(1);
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, std::string("2 workers left of at least 3: ") + kThirdKilled);
  ASSERT_THAT(Sent<StopMessage>(met), SizeIs(2));

  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    FinishedMessage message = Finished(rank);
    message.suspended = true;
    message.files.clear();
    if (rank == 0) message.files = {kCheckpointFile};
    rig_.Step(Said(rank + 1, message));
  }
  rig_.Step(ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "c"}});
  rig_.Step(WorkerExited{.worker = WorkerId{1}});
  const Actions last = rig_.Step(WorkerExited{.worker = WorkerId{2}});

  const std::vector<StartWorker> starts = Only<StartWorker>(last);
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].worker, WorkerId{4}) << "ids are never used again";
  EXPECT_EQ(starts[0].checkpoint, "c");
  EXPECT_EQ(record().fruitless, 0u);
}

TEST_F(JobRegroupTest, IdsOfThoseWhoWereLostAreNotUsedAgain) {
  Regroup();
  Meet();
  Report(1);
  rig_.Step(JobUpdated{
      .job = JobId{1}, .spec = "spec", .settings = record().settings, .needs_restart = true});
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    FinishedMessage message = Finished(rank);
    message.suspended = true;
    message.files.clear();
    if (rank == 0) message.files = {kCheckpointFile};
    rig_.Step(Said(rank + 1, message));
  }
  rig_.Step(ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "c"}});
  rig_.Step(WorkerExited{.worker = WorkerId{1}});
  const std::vector<StartWorker> starts =
      Only<StartWorker>(rig_.Step(WorkerExited{.worker = WorkerId{2}}));

  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].worker, WorkerId{4});
}

TEST_F(JobRegroupTest, ItGrowsAgainTheLaterTheMoreItLost) {
  Regroup();
  Meet();
  Report(1);

  EXPECT_THAT(Only<StartWorker>(Wait(6)), IsEmpty()) << "the device may fail again";
  Report(2);

  EXPECT_THAT(Only<StartWorker>(Wait(5)), SizeIs(1));
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().state_reason, "training on 2 workers; worker 4 on node b loading, to join");
}

}  // namespace
}  // namespace tactus::job
