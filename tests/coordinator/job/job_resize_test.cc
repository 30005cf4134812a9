// Workers that join a group while it trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/resize_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST_F(JobResizeTest, WorkersLoadBesideTheGroupWhichTrainsOn) {
  rig_.Step(Join("c", 2));
  EXPECT_THAT(Only<StartWorker>(Wait(4)), IsEmpty()) << "another node may come in a moment";
  const Actions grown = Wait(1);

  const std::vector<StartWorker> starts = Only<StartWorker>(grown);
  ASSERT_THAT(starts, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(starts[i].worker, WorkerId{4 + i});
    EXPECT_EQ(starts[i].node, "c");
    EXPECT_EQ(starts[i].checkpoint, "") << "the group has what they need";
  }
  EXPECT_THAT(Stopped(grown), IsEmpty());
  EXPECT_THAT(Sent<StopMessage>(grown), IsEmpty());
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().state_reason,
            "training on 3 workers; worker 4 on node c, worker 5 on node c loading, to join");
  EXPECT_THAT(Joiners(), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(Members(), SizeIs(3));
  rig_.Round();
  EXPECT_EQ(present().progress.rounds, 2u);
}

TEST_F(JobResizeTest, TheyAreDurableBeforeTheyAreStarted) {
  const Actions grown = Grow();

  bool durable = false;
  for (const Action& action : grown) {
    const auto* persist = std::get_if<PersistJob>(&action);
    if (persist != nullptr) durable = persist->record.joiners.size() == 2;
    if (std::holds_alternative<StartWorker>(action)) {
      EXPECT_TRUE(durable);
    }
  }
}

TEST_F(JobResizeTest, WhenTheyAreReadyTheGroupLeavesTogetherAndTakesThemIn) {
  Grow();
  EXPECT_THAT(Sent<StopMessage>(SayReady(5)), IsEmpty());
  const std::vector<StopMessage> asked = Sent<StopMessage>(SayReady(4));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_TRUE(IsRegroup(asked[0]));
  EXPECT_EQ(asked[0].reason, kJoin);
  EXPECT_THAT(asked[0].leaving, IsEmpty());
  EXPECT_EQ(record().state, JobState::kRunning);
  const Actions formed = Leave(7);

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(formed);
  ASSERT_THAT(groups, SizeIs(5));
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(groups[rank].rank, rank);
    EXPECT_EQ(groups[rank].generation, 2u);
    EXPECT_THAT(groups[rank].rounds, ElementsAre(7u, 7u, 7u, 0u, 0u));
    EXPECT_THAT(groups[rank].nodes, ElementsAre(0u, 0u, 1u, 2u, 2u));
    EXPECT_THAT(groups[rank].plan.batch_sizes, SizeIs(5));
  }
  EXPECT_EQ(record().state_reason, std::string("regrouping: ") + kJoin +
                                       "; 3 of 3 workers go on from round 7, and 2 join");
  EXPECT_THAT(Sent<PeersMessage>(Meet()), SizeIs(5));
  Report(7);

  EXPECT_EQ(record().state_reason, "training on 5 workers");
  EXPECT_EQ(record().resizes, 1u);
  EXPECT_EQ(record().resize_reason, std::string("from 3 to 5 workers without a stop: ") + kJoin);
  EXPECT_EQ(record().regroups, 0u);
  EXPECT_EQ(record().suspensions, 0u);
  EXPECT_THAT(record().joiners, IsEmpty());
  ASSERT_THAT(record().attempts, SizeIs(1));
  EXPECT_EQ(record().attempts[0].workers, 5u);
  Wait(1);
  Report(8);
  EXPECT_EQ(present().progress.rounds, 9u);
}

TEST_F(JobResizeTest, SharesAreBySpeedAtOnce) {
  for (int i = 0; i < 5; ++i) rig_.Round();
  Grow();
  ReadyMessage fast = Ready();
  fast.samples_per_second = 200;
  rig_.Step(Said(4, fast));
  fast.samples_per_second = 50;
  rig_.Step(Said(5, fast));

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Leave(6));

  ASSERT_THAT(groups, SizeIs(5));
  // 160 samples over speeds of 100, 100, 50, 200 and 50.
  EXPECT_THAT(groups[0].plan.batch_sizes, ElementsAre(32u, 32u, 16u, 64u, 16u));
}

TEST_F(JobResizeTest, OneThatIsSlowHoldsTheOthersUpNoLongerThanTheyTook) {
  Grow();
  Wait(2);
  EXPECT_THAT(Sent<StopMessage>(SayReady(4)), IsEmpty());
  EXPECT_THAT(Sent<StopMessage>(Wait(2)), IsEmpty());
  EXPECT_THAT(Sent<StopMessage>(Wait(0.2)), SizeIs(3));
  EXPECT_THAT(Sent<GroupMessage>(Leave()), SizeIs(4));
  EXPECT_THAT(Joiners(), ElementsAre(WorkerId{5}));
  Meet();
  Report(1);
  EXPECT_EQ(record().state_reason, "training on 4 workers; worker 5 on node c loading, to join");

  EXPECT_THAT(Sent<StopMessage>(SayReady(5)), SizeIs(4));
  EXPECT_THAT(Sent<GroupMessage>(Leave(2)), SizeIs(5));
}

TEST_F(JobResizeTest, APlanWaitsForTheNextGroup) {
  for (int i = 0; i < 5; ++i) rig_.Round(record().newest_plan.version);
  Grow();
  SayReady(4);
  SayReady(5);

  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(PlansSent(rig_.Round(record().newest_plan.version)), IsEmpty());
  }
}

// ---- Who does not come to join

TEST_F(JobResizeTest, OneThatFailsIsNoneOfTheGroupsConcern) {
  Grow();
  SayReady(4);
  const Actions failed =
      rig_.Step(Said(5, FailedMessage{.field = "data", .message = "no such file"}));

  EXPECT_THAT(Stopped(failed), ElementsAre(WorkerId{5}));
  EXPECT_THAT(Sent<StopMessage>(failed), SizeIs(3)) << "the other waited for it";
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_THAT(record().state_reason, HasSubstr("did not join: worker 5 on node c: no such file"));
  EXPECT_THAT(Sent<GroupMessage>(Leave()), SizeIs(4));
}

TEST_F(JobResizeTest, OneThatLoadedOtherThingsIsEnded) {
  Grow();
  ReadyMessage odd = Ready();
  odd.train_samples = 99;
  const Actions actions = rig_.Step(Said(4, odd));

  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{4}));
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_THAT(record().state_reason,
              HasSubstr("worker 4 on node c: has 99 training samples, the group has 1000"));
}

TEST_F(JobResizeTest, OneThatIsKilledFreesItsDeviceAndTheNextOneComesLater) {
  Grow();
  Kill(4);
  Kill(5);
  EXPECT_THAT(record().joiners, IsEmpty());
  EXPECT_EQ(rig_.cluster().membership().HolderOf("c", "cpu:0"), nullptr);
  EXPECT_THAT(Only<StartWorker>(Wait(10)), IsEmpty()) << "each one doubles the time";
  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(10));

  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].worker, WorkerId{6});
  EXPECT_THAT(record().state_reason, HasSubstr("loading, to join"));
}

TEST_F(JobResizeTest, OneThatTakesTooLongIsEnded) {
  Grow();
  EXPECT_THAT(Stopped(Wait(599)), IsEmpty());

  EXPECT_THAT(Stopped(Wait(2)), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(record().state_reason, HasSubstr("not ready within 10 minutes"));
}

TEST_F(JobResizeTest, OneWhoseNodeIsNotHeardIsAStrayWhenItIsHeardAgain) {
  Grow();
  EXPECT_THAT(Stopped(rig_.Step(NodeUnreachable{.node = "c", .reason = "no heartbeat"})),
              ElementsAre(WorkerId{4}, WorkerId{5}))
      << "when they are heard";
  EXPECT_THAT(record().joiners, IsEmpty());

  NodeJoined back = Join("c", 2);
  back.same_incarnation = true;
  back.running_workers = {WorkerId{4}, WorkerId{5}};

  EXPECT_THAT(Stopped(rig_.Step(back)), ElementsAre(WorkerId{4}, WorkerId{5}));
}

TEST_F(JobResizeTest, WhoDoesNotMeetTheOthersIsLeftOutAndTheyGoOn) {
  Join2();
  Meet();
  for (const WorkerId worker : Members()) {
    const bool joins = worker.value > 3;
    rig_.Step(Said(
        worker.value,
        GroupLostMessage{.generation = 2, .rounds = joins ? 0u : 2u, .reason = "cannot connect"}));
  }
  // After two rounds that they have been told of.
  const Actions formed = Wait(2);

  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(3));
  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{4}, WorkerId{5}));
}

TEST_F(JobResizeTest, WhoHasTakenNothingOverYetCannotGoOnAlone) {
  Join2();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) Kill(worker);

  EXPECT_EQ(record().state, JobState::kFailed) << "it may be tried but once";
}

// ---- Other things happen meanwhile

TEST_F(JobResizeTest, AMemberThatIsLostMeanwhileIsAnsweredByWhoIsReady) {
  Grow();
  SayReady(4);
  Kill(3);
  Lose(1);
  const Actions formed = Lose(2);

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(formed);
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_THAT(groups[0].rounds, ElementsAre(1u, 1u, 0u));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{4}));
  EXPECT_THAT(Joiners(), ElementsAre(WorkerId{5}));
  EXPECT_EQ(record().regroups, 1u);
  EXPECT_EQ(record().resizes, 0u);
  EXPECT_EQ(record().state_reason, std::string("regrouping: ") + kThirdKilled +
                                       "; 2 of 3 workers go on from round 1, and 1 joins");
}

TEST_F(JobResizeTest, AMemberMayBeLostWhileTheGroupLeaves) {
  Grow();
  SayReady(4);
  SayReady(5);
  Kill(3);
  const auto leave = [this](std::uint64_t worker) {
    return rig_.Step(Said(worker, GroupLostMessage{.generation = 1, .rounds = 1, .planned = true}));
  };
  leave(1);

  EXPECT_THAT(Sent<GroupMessage>(leave(2)), SizeIs(4));
  EXPECT_EQ(record().regroups, 1u);
  EXPECT_EQ(record().regroup_reason, kThirdKilled);
}

TEST_F(JobResizeTest, AJobThatEndsMeanwhileEndsThem) {
  Grow();
  SayReady(4);
  const Actions finished = rig_.Step(Said(1, Finished(0)));

  EXPECT_THAT(Stopped(finished), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(record().joiners, IsEmpty());
  rig_.Step(Said(2, Finished(1)));
  rig_.Step(Said(3, Finished(2)));
  rig_.StoreAll();
  EXPECT_EQ(record().state, JobState::kSucceeded);
}

TEST_F(JobResizeTest, ACancelEndsThem) {
  Grow();

  EXPECT_THAT(Stopped(rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"})),
              ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_EQ(record().state, JobState::kStopping);
}

TEST_F(JobResizeTest, APauseThatComesBehindTheQuestionIsAskedOfTheNextGroup) {
  Grow();
  SayReady(4);
  SayReady(5);
  const Actions paused = rig_.Step(JobPaused{JobId{1}});
  EXPECT_THAT(Stopped(paused), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(Sent<StopMessage>(paused), SizeIs(3));

  EXPECT_THAT(Sent<GroupMessage>(Leave()), SizeIs(3)) << "their round had voted before";
  Meet();
  const std::vector<StopMessage> again = Sent<StopMessage>(Report(1));

  ASSERT_THAT(again, SizeIs(3));
  EXPECT_FALSE(again[0].regroup);
  EXPECT_EQ(record().state, JobState::kSuspending);
}

TEST_F(JobResizeTest, WorkersThatKnowOfNoRegroupSuspendAndTheJobGrowsTheOldWay) {
  Grow();
  SayReady(4);
  SayReady(5);
  Actions stopped;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    FinishedMessage message = Finished(rank);
    message.reason = kJoin;
    message.suspended = true;
    message.files.clear();
    if (rank == 0) message.files = {kCheckpointFile};
    const Actions actions = rig_.Step(Said(rank + 1, message));
    stopped.insert(stopped.end(), actions.begin(), actions.end());
  }
  EXPECT_THAT(Stopped(stopped), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, kJoin);
  rig_.Step(ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "c"}});
  Actions last;
  for (std::uint64_t worker = 1; worker <= 5; ++worker) {
    last = rig_.Step(WorkerExited{.worker = WorkerId{worker}});
  }

  EXPECT_THAT(Only<StartWorker>(last), SizeIs(5));
}

// ---- The coordinator restarts

TEST_F(JobResizeTest, WhoLoadsWhenTheCoordinatorRestartsIsEnded) {
  Grow();
  SayReady(4);
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  const Actions back = rig_.Rejoin("c", 2, {WorkerId{4}, WorkerId{5}});

  EXPECT_THAT(Stopped(back), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_EQ(record().state_reason, "training on 3 workers");
  EXPECT_THAT(record().joiners, IsEmpty());
  rig_.Step(WorkerExited{.worker = WorkerId{4}});
  rig_.Step(WorkerExited{.worker = WorkerId{5}});
  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(5));
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].worker, WorkerId{6}) << "ids are never used again";
}

TEST_F(JobResizeTest, WhoHadLeftForTheNextGroupFormsItUnderTheNextCoordinator) {
  Grow();
  SayReady(4);
  SayReady(5);
  for (std::uint64_t worker = 1; worker <= 2; ++worker) {
    rig_.Step(Said(
        worker, GroupLostMessage{.generation = 1, .rounds = 3, .reason = kJoin, .planned = true}));
  }
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  const Actions formed = rig_.Step(
      Said(3, GroupLostMessage{.generation = 1, .rounds = 3, .reason = kJoin, .planned = true}));

  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(3));
  EXPECT_EQ(record().resizes, 0u);
  EXPECT_EQ(record().regroup_reason, kJoin);
  Meet();
  Report(3);
  EXPECT_EQ(record().state_reason, "training on 3 workers");
}

TEST_F(JobResizeTest, WhoWasToldOfTheNextGroupIsInItUnderTheNextCoordinator) {
  Join2();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  EXPECT_THAT(Stopped(rig_.Rejoin("c", 2, {WorkerId{4}, WorkerId{5}})), IsEmpty());

  EXPECT_THAT(Members(), SizeIs(5));
  Report(1);
  EXPECT_EQ(record().state_reason, "training on 5 workers");
}

TEST_F(JobResizeTest, WhoMayHaveMissedTheNextGroupIsToldOfAnother) {
  Join2();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  rig_.Rejoin("c", 2, {WorkerId{4}, WorkerId{5}});

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Wait(3));

  ASSERT_THAT(groups, SizeIs(5));
  EXPECT_EQ(groups[4].generation, 3u);
  EXPECT_THAT(groups[4].rounds, ElementsAre(1u, 1u, 1u, 0u, 0u));
}

// ---- Groups of before

TEST_F(JobResizeTest, AGroupOfWhichIsNotKnownWhatItLoadedGrowsByACheckpoint) {
  rig_.Step(Join("c", 2));
  rig_.ForgetLoaded();
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  rig_.Rejoin("c", 2, {});
  Wait(29);
  EXPECT_EQ(record().state, JobState::kRunning);
  Wait(2);
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_THAT(record().state_reason, StartsWith("grows onto free devices"));
}

}  // namespace
}  // namespace tactus::job
