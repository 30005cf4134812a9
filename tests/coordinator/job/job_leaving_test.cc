// What a job that cannot do with less makes of a node that says that it will end: a suspension in
// time, or a loss that nobody counts. Who can do with less: job_resize_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class JobLeavingTest : public testing::Test {
 protected:
  explicit JobLeavingTest(JobRecord job = Job(1)) : rig_(std::move(job)) {}

  Actions Leave(const std::string& node, double within = 60) {
    return rig_.Step(
        NodeLeaving{.node = node, .leave = {.reason = "SIGTERM", .within = Seconds(within)}});
  }
  void SaySuspended(std::uint32_t rank) {
    FinishedMessage message = Finished(rank);
    message.reason = "another member asked to stop";
    message.suspended = true;
    message.rounds = 1;
    message.files.clear();
    if (rank == 0) message.files = {kCheckpointFile};
    rig_.Step(Said(rank + 1, message));
  }
  void StoreCheckpoint() {
    rig_.Step(
        ArtifactStored{JobId{1}, {.path = kCheckpointFile, .size_bytes = 9, .sha256 = "c0ffee"}});
  }
  Actions Exit(std::uint64_t worker, int signal = 0) {
    return rig_.Step(WorkerExited{
        .worker = WorkerId{worker}, .exit_code = signal == 0 ? 0 : -1, .signal = signal});
  }
  std::vector<std::string> NodesStarted(const Actions& actions) {
    std::vector<std::string> nodes;
    for (const StartWorker& start : Only<StartWorker>(actions)) nodes.push_back(start.node);
    return nodes;
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
};

// It needs all that it has, and whatever is lost would fail it.
class JobOnceLeavingTest : public JobLeavingTest {
 protected:
  JobOnceLeavingTest()
      : JobLeavingTest(Job(1, {.workers_min = 3, .workers_max = 3, .retries = 0})) {}

  // There are two devices more.
  void ToRunning() {
    rig_.ToRunning();
    rig_.Step(Join("d", 2));
  }
};

TEST_F(JobOnceLeavingTest, ItIsSuspendedInTimeAndGoesOnOnTheOthers) {
  ToRunning();

  const Actions asked = Leave("a");

  ASSERT_THAT(Sent<StopMessage>(asked), SizeIs(3));
  EXPECT_TRUE(Sent<StopMessage>(asked)[0].suspend);
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, "node a is leaving: SIGTERM");
  for (std::uint32_t rank = 0; rank < 3; ++rank) SaySuspended(rank);
  StoreCheckpoint();
  Exit(1);
  Exit(2);
  EXPECT_THAT(NodesStarted(Exit(3)), ElementsAre("b", "d", "d"));
  EXPECT_EQ(record().checkpoint->rounds, 1u);
  EXPECT_EQ(record().attempts.size(), 1u);
  EXPECT_EQ(record().suspensions, 1u);
}

TEST_F(JobLeavingTest, ItsWorkersMayHaveBeenFasterThanItsAgent) {
  rig_.ToRunning();

  SaySuspended(2);
  EXPECT_EQ(record().state_reason, "another member asked to stop");
  Leave("a");

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, "node a is leaving: SIGTERM");
}

TEST_F(JobOnceLeavingTest, WhatIsNotThroughInTimeIsLostAndCountsForNothing) {
  ToRunning();
  Leave("a", 20);
  SaySuspended(2);
  Exit(3);

  Exit(1, 15);
  const Actions gone = Exit(2, 9);

  EXPECT_THAT(NodesStarted(gone), ElementsAre("b", "d", "d"));  // at once
  EXPECT_EQ(record().fruitless, 0u);
  EXPECT_EQ(record().progress.rounds, 0u);
  ASSERT_THAT(record().attempts, SizeIs(2));  // on record all the same: work was lost
  EXPECT_EQ(record().attempts.front().reason,
            "worker 1 on node a was ended by signal 15 (SIGTERM)");
}

TEST_F(JobOnceLeavingTest, WhoIsNotHeardOfAgainIsGoneWhenItSaidSo) {
  ToRunning();
  Leave("a", 20);
  const double told = rig_.seconds();
  rig_.Step(NodeUnreachable{.node = "a", .reason = "not heard for 10 s"});
  SaySuspended(2);
  Exit(3);

  rig_.StepAt(told + 29.9, Ticked{});
  EXPECT_EQ(record().state, JobState::kSuspending);
  const Actions given_up = rig_.StepAt(told + 30, Ticked{});

  EXPECT_THAT(NodesStarted(given_up), ElementsAre("b", "d", "d"));
  EXPECT_EQ(record().attempts.front().reason, "node a left before its workers had ended: SIGTERM");
}

// The group that goes on without the one that was gone first still has the other.
TEST_F(JobOnceLeavingTest, OfTwoNodesNeitherIsForgotten) {
  ToRunning();
  Leave("a", 60);
  Leave("b", 5);
  Exit(3, SIGTERM);
  for (const std::uint64_t worker : {1, 2}) {
    rig_.Step(Said(worker, GroupLostMessage{.generation = 1, .rounds = 1, .reason = "lost"}));
  }
  ASSERT_EQ(record().generation, 2u);

  Exit(1, SIGTERM);
  Exit(2, SIGTERM);

  EXPECT_NE(record().state, JobState::kFailed);
  EXPECT_EQ(record().fruitless, 0u);
}

TEST_F(JobOnceLeavingTest, ANodeThatOwesNothingIsNotWaitedFor) {
  rig_.ToRunning();
  Leave("b", 20);
  const double told = rig_.seconds();
  for (std::uint32_t rank = 0; rank < 3; ++rank) SaySuspended(rank);
  Exit(3);

  rig_.StepAt(told + 100, Ticked{});  // the leader's file is long

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_FALSE(record().suspension->lost);
}

TEST_F(JobLeavingTest, BeforeTheFirstRoundItStartsElsewhere) {
  rig_.ToFormed();

  const Actions told = Leave("b");

  EXPECT_THAT(Stopped(told), SizeIs(3));
  Exit(1, 15);
  Exit(2, 15);
  EXPECT_THAT(NodesStarted(Exit(3)), ElementsAre("a", "a"));
  EXPECT_EQ(record().fruitless, 0u);
}

TEST_F(JobLeavingTest, AJobThatIsPausedStaysSo) {
  rig_.ToRunning();
  rig_.Step(JobPaused{JobId{1}});

  EXPECT_THAT(Sent<StopMessage>(Leave("a")), IsEmpty());

  EXPECT_EQ(record().state_reason, "paused by the user");
  for (std::uint32_t rank = 0; rank < 3; ++rank) SaySuspended(rank);
  StoreCheckpoint();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) Exit(worker);
  EXPECT_EQ(record().state, JobState::kPaused);
}

TEST_F(JobLeavingTest, ItIsGivenNothingUntilItsNextAgentComes) {
  rig_.Step(Join("a", 1));
  Leave("a");

  EXPECT_THAT(NodesStarted(rig_.Step(JobSubmitted{Job(1)})), IsEmpty());
  EXPECT_EQ(record().state_reason, "needs 1 device; 0 free, 1 on nodes that end");
  NodeJoined again = Join("a", 1);
  again.same_incarnation = true;
  again.leave = {.reason = "SIGTERM", .within = Seconds(50)};
  EXPECT_THAT(NodesStarted(rig_.Step(again)), IsEmpty());
  EXPECT_THAT(NodesStarted(rig_.Step(Join("a", 1))), ElementsAre("a"));
}

TEST_F(JobOnceLeavingTest, ACoordinatorThatRestartedLearnsItFromTheAgentThatIsBack) {
  rig_.ToRunning();
  rig_.Restart();
  rig_.Rejoin("b", 1, {WorkerId{3}});

  NodeJoined back = Join("a", 2);
  back.running_workers = {WorkerId{1}, WorkerId{2}};
  back.leave = {.reason = "SIGTERM", .within = Seconds(20)};
  const Actions actions = rig_.Step(back);

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_THAT(Sent<StopMessage>(actions), SizeIs(3));
}

TEST_F(JobOnceLeavingTest, ItsOwnWordsAgainstItStillCount) {
  rig_.ToRunning();
  Leave("a");

  rig_.Step(Said(1, FailedMessage{.field = "data", .message = "bad data"}));

  EXPECT_EQ(record().state, JobState::kFailed);
}

}  // namespace
}  // namespace tactus::job
