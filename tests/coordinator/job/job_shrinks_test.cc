// Workers that leave a group while it trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/resize_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// ---- Who leaves

TEST_F(JobResizeTest, ADrainedNodeIsLeftAndTheOthersTrainOn) {
  const std::vector<StopMessage> asked =
      Sent<StopMessage>(rig_.Step(NodeMarked{{.name = "a", .cordoned = true, .draining = true}}));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_TRUE(IsRegroup(asked[0]));
  EXPECT_EQ(asked[0].reason, "node a is drained");
  for (const StopMessage& stop : asked) EXPECT_THAT(stop.leaving, ElementsAre(0u, 1u));
  EXPECT_THAT(Sent<StopMessage>(Wait(1)), IsEmpty()) << "once";
  const Actions formed = Leave(5);

  EXPECT_THAT(Members(), ElementsAre(WorkerId{3}));
  ASSERT_THAT(Sent<GroupMessage>(formed), SizeIs(1));
  EXPECT_THAT(Sent<GroupMessage>(formed)[0].rounds, ElementsAre(5u));
  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_EQ(record().resize_reason, "from 3 to 1 worker without a stop: node a is drained");
  EXPECT_NE(rig_.cluster().membership().HolderOf("a", "cpu:0"), nullptr) << "until it is gone";
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .signal = 15});
  rig_.Step(WorkerExited{.worker = WorkerId{2}, .signal = 15});
  EXPECT_EQ(rig_.cluster().JobOn("a"), "");
  Meet();
  Report(5);
  EXPECT_EQ(record().state_reason, "training on 1 worker");
  EXPECT_EQ(record().regroups, 0u);
  EXPECT_EQ(record().suspensions, 0u);
}

// A coordinator that is killed in between finds them gone, of a group that it does not know to have
// been left by them.
TEST_F(JobResizeTest, TheNextGroupIsDurableBeforeWhoLeavesIsEnded) {
  rig_.Step(NodeMarked{{.name = "a", .cordoned = true, .draining = true}});
  const std::uint64_t generation = record().generation;

  const Actions formed = Leave(5);

  bool durable = false;
  for (const Action& action : formed) {
    const auto* persist = std::get_if<PersistJob>(&action);
    if (persist != nullptr) durable = persist->record.generation > generation;
    if (std::holds_alternative<StopWorker>(action)) {
      EXPECT_TRUE(durable);
    }
  }
  EXPECT_THAT(Stopped(formed), SizeIs(2));
}

TEST_F(JobResizeTest, ADrainMeetsWhoLoads) {
  Grow();
  const Actions drained = rig_.Step(NodeMarked{{.name = "c", .cordoned = true, .draining = true}});

  EXPECT_THAT(Stopped(drained), ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(Sent<StopMessage>(drained), IsEmpty());
  EXPECT_EQ(record().state_reason, "training on 3 workers");
}

TEST_F(JobResizeTest, SomeMayLeaveAsOthersJoin) {
  Grow();
  SayReady(4);
  rig_.Step(NodeMarked{{.name = "b", .cordoned = true, .draining = true}});
  SayReady(5);
  const Actions formed = Leave();

  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(Stopped(formed), ElementsAre(WorkerId{3}));
  EXPECT_EQ(record().resize_reason,
            std::string("from 3 to 4 workers without a stop: ") + kJoin + "; node b is drained");
}

TEST_F(JobResizeTest, WhatIsAskedForWhileItRegroupsIsDoneBehindThat) {
  Kill(3);
  rig_.Step(NodeLeaving{.node = "a", .leave = {.reason = "SIGTERM", .within = Seconds(60)}});

  EXPECT_EQ(record().state, JobState::kSuspending) << "nobody would be left";
}

TEST_F(JobResizeTest, TheQueueGetsWhatItNeedsAndNoMore) {
  Wait(31);
  const JobRecord other =
      Job(2, {.name = "beta", .workers_min = 1, .workers_max = 3, .priority = 1});
  const std::vector<StopMessage> asked = Sent<StopMessage>(rig_.Step(JobSubmitted{other}));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_TRUE(IsRegroup(asked[0]));
  EXPECT_EQ(asked[0].reason, "makes room for job beta");
  Actions actions;
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    actions =
        rig_.Step(Said(worker, GroupLostMessage{.generation = 1, .rounds = 1, .planned = true}));
  }
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{3}));

  const std::vector<StartWorker> starts =
      Only<StartWorker>(rig_.Step(WorkerExited{.worker = WorkerId{3}, .signal = 15}));
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].job, JobId{2});
  EXPECT_EQ(starts[0].node, "b");
}

// ---- Nodes that leave

TEST_F(JobResizeTest, ANodeThatLeavesIsLeftInTimeAndALaterLossCounts) {
  const std::vector<StopMessage> asked = Sent<StopMessage>(
      rig_.Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(20)}}));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_EQ(asked[0].reason, "node b is leaving: SIGTERM");
  EXPECT_THAT(Stopped(Leave()), ElementsAre(WorkerId{3}));
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .signal = 15});
  Meet();
  Report(1);
  EXPECT_EQ(record().state_reason, "training on 2 workers");
  Wait(100);
  EXPECT_EQ(record().state, JobState::kRunning);

  Kill(1);
  Kill(2);
  EXPECT_EQ(record().state, JobState::kFailed) << "it may be tried but once";
}

TEST_F(JobResizeTest, ANodeThatIsGoneBeforeIsALossThatTheOthersSurvive) {
  rig_.Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(5)}});
  rig_.Step(Said(1, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "reset"}));
  rig_.Step(Said(2, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "reset"}));

  EXPECT_THAT(Sent<GroupMessage>(Kill(3)), SizeIs(2));
  EXPECT_EQ(record().state, JobState::kRunning);
}

TEST_F(JobResizeTest, ANodeThatDoesNotSayThatItIsGoneIsSoWhenItsTimeIsOver) {
  rig_.Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(5)}});
  rig_.Step(NodeUnreachable{.node = "b", .reason = "no heartbeat"});
  rig_.Step(Said(1, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "reset"}));
  rig_.Step(Said(2, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "reset"}));
  const double told = rig_.seconds();

  Actions formed;
  while (Sent<GroupMessage>(formed).empty()) {
    ASSERT_LT(rig_.seconds(), told + 16);
    formed = Wait(0.5);
  }
  EXPECT_THAT(Sent<GroupMessage>(formed), SizeIs(2));
  EXPECT_THAT(record().regroup_reason, HasSubstr("node b was lost: it is leaving: SIGTERM"));
}

class JobOfThreeResizeTest : public JobResizeTest {
 protected:
  JobOfThreeResizeTest() : JobResizeTest(3) {}
};

TEST_F(JobOfThreeResizeTest, BelowItsLeastItIsSuspendedAsEver) {
  const std::vector<StopMessage> asked = Sent<StopMessage>(
      rig_.Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(20)}}));

  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_FALSE(asked[0].regroup);
  EXPECT_EQ(record().state, JobState::kSuspending);
}

TEST_F(JobOfThreeResizeTest, WhoCannotBeSparedAnyMoreStaysForTheSuspension) {
  Grow();
  SayReady(4);
  SayReady(5);
  Leave();
  Meet();
  Report(1);
  // Two of five may go; but one is lost meanwhile.
  rig_.Step(NodeMarked{{.name = "c", .cordoned = true, .draining = true}});
  Kill(3);
  for (const std::uint64_t worker : {1u, 2u, 4u}) Lose(worker, 2);
  EXPECT_THAT(Sent<GroupMessage>(Lose(5, 2)), SizeIs(4));
  Meet();
  Report(2);

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, "node c is drained");
}

}  // namespace
}  // namespace tactus::job
