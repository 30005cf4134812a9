#include "coordinator/job/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Started(const Actions& actions) {
  std::vector<std::string> starts;
  for (const StartWorker& start : Only<StartWorker>(actions)) {
    starts.push_back(start.job_name + "@" + start.node + "/" + start.device);
  }
  return starts;
}

JobSubmitted Submit(std::uint64_t id, const JobSettings& settings) {
  return JobSubmitted{Job(id, settings)};
}

class ClusterTest : public testing::Test {
 protected:
  Actions Step(const Event& event) { return cluster_.Step(event, At(seconds_ += 1)); }

  Cluster cluster_{kWallOffset};
  double seconds_ = 0;
};

TEST_F(ClusterTest, AJobIsPersistedBeforeItIsPublished) {
  const Actions actions = Step(Submit(1, {.workers_min = 2}));

  ASSERT_GE(actions.size(), 2u);
  EXPECT_EQ(std::get<PersistJob>(actions[0]).record.revision, 1u);
  EXPECT_EQ(std::get<PublishJob>(actions[1]).record.revision, 1u);
  EXPECT_EQ(cluster_.Find(JobId{1})->state_reason, "needs 2 devices; 0 free, 0 known");
}

TEST_F(ClusterTest, AJobTakesAsManyDevicesAsItMay) {
  Step(Join("a", 3));

  EXPECT_THAT(Started(Step(Submit(1, {.workers_min = 1, .workers_max = 2}))),
              ElementsAre("alpha-1@a/cpu:0", "alpha-1@a/cpu:1"));
  EXPECT_EQ(cluster_.membership().HolderOf("a", "cpu:1")->job_name, "alpha-1");
}

TEST_F(ClusterTest, TheHeadOfTheQueueHoldsUpThoseBehindIt) {
  Step(Join("a", 1));
  Step(Submit(1, {.workers_min = 2}));

  EXPECT_THAT(Started(Step(Submit(2, {.workers_min = 1}))), IsEmpty());
  EXPECT_EQ(cluster_.Find(JobId{2})->state_reason, "waiting for earlier jobs in the queue");

  EXPECT_THAT(Started(Step(JobCancelled{.job = JobId{1}})), ElementsAre("alpha-2@a/cpu:0"));
}

TEST_F(ClusterTest, WhatTheHeadCannotUseIsLentAndGivenBack) {
  Step(Join("a", 1));
  Step(Submit(1, {.workers_min = 2}));
  Step(Submit(2, {.workers_min = 1}));
  const Instant later = At(10);

  EXPECT_THAT(Started(cluster_.Step(Ticked{}, later)), ElementsAre("alpha-2@a/cpu:0"));

  const Actions actions = cluster_.Step(Join("b", 1), later);
  EXPECT_THAT(Started(actions), IsEmpty());
  EXPECT_EQ(cluster_.Find(JobId{2})->state, JobState::kSuspending);
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{1001}));
  EXPECT_THAT(Started(cluster_.Step(WorkerExited{.worker = WorkerId{1001}}, later)),
              ElementsAre("alpha-1@a/cpu:0", "alpha-1@b/cpu:0"));
  EXPECT_EQ(cluster_.Find(JobId{2})->state, JobState::kQueued);
}

TEST_F(ClusterTest, JobsThatAllDevicesTogetherCouldNotServeHoldNobodyUp) {
  Step(Join("a", 2));
  for (std::uint64_t id = 1; id <= Admission::kWaitingLookedAt + 1; ++id) {
    Step(Submit(id, {.workers_min = 1, .selector = {{"rack", "none"}}}));
  }
  Step(Submit(900, {.workers_min = 3, .priority = 9}));

  EXPECT_THAT(Started(Step(Submit(901, {.workers_min = 1}))),
              ElementsAre("alpha-901@a/cpu:0", "alpha-901@a/cpu:1"));
  EXPECT_EQ(cluster_.Find(JobId{900})->state_reason, "needs 3 devices; 0 free, 2 known");
}

TEST_F(ClusterTest, ADrainedNodeIsLeftAndGetsNoWorkersUntilItIsUncordoned) {
  Step(Join("a", 1));
  Step(Submit(1, {.workers_min = 1}));

  const Actions drained = Step(NodeMarked{{.name = "a", .cordoned = true, .draining = true}});

  EXPECT_EQ(Only<PersistNode>(drained).at(0).node.name, "a");
  EXPECT_THAT(Stopped(drained), ElementsAre(WorkerId{1}));
  EXPECT_THAT(Started(Step(WorkerExited{.worker = WorkerId{1}})), IsEmpty());
  EXPECT_EQ(cluster_.Find(JobId{1})->state_reason, "needs 1 device; 0 free, 1 on cordoned nodes");
  EXPECT_THAT(Started(Step(NodeMarked{{.name = "a"}})), ElementsAre("alpha-1@a/cpu:0"));
}

TEST_F(ClusterTest, ANodeThatIsGoneIsForgottenWithItsCordon) {
  Step(Join("a", 1));
  Step(NodeMarked{{.name = "a", .cordoned = true}});
  EXPECT_THAT(Step(NodeDeleted{"a"}), IsEmpty());  // it is connected
  Step(NodeUnreachable{.node = "a"});

  const Actions actions = Step(NodeDeleted{"a"});

  ASSERT_THAT(Only<PersistNode>(actions), SizeIs(1));
  EXPECT_EQ(Only<PersistNode>(actions)[0].node.name, "a");
  EXPECT_FALSE(Only<PersistNode>(actions)[0].node.cordoned);
  EXPECT_FALSE(cluster_.membership().nodes().contains("a"));
  EXPECT_THAT(Step(NodeDeleted{"a"}), IsEmpty());  // it is not known any more
  Step(Submit(1, {.workers_min = 1}));
  EXPECT_EQ(cluster_.Find(JobId{1})->state_reason, "needs 1 device; 0 free, 0 known");
  EXPECT_THAT(Started(Step(Join("a", 1))), ElementsAre("alpha-1@a/cpu:0"));
}

TEST_F(ClusterTest, ANodeWithWorkersOfAJobIsNotForgotten) {
  Step(Join("a", 1));
  Step(Submit(1, {.workers_min = 1}));
  Step(NodeUnreachable{.node = "a"});

  EXPECT_EQ(cluster_.JobOn("a"), "alpha-1");
  EXPECT_THAT(Only<PersistNode>(Step(NodeDeleted{"a"})), IsEmpty());
  EXPECT_TRUE(cluster_.membership().nodes().contains("a"));

  Step(NodeLost{.node = "a", .reason = "the agent was started again"});
  EXPECT_EQ(cluster_.JobOn("a"), "");
  EXPECT_THAT(Only<PersistNode>(Step(NodeDeleted{"a"})), SizeIs(1));
}

// Nobody holds a device of it yet.
TEST(ClusterRestartTest, ANodeThatAJobWaitsForIsNotForgotten) {
  Rig rig;
  rig.ToRunning();
  rig.Restart();
  rig.Step(NodeMarked{{.name = "a", .cordoned = true}});

  EXPECT_EQ(rig.cluster().JobOn("a"), "alpha-1");
  EXPECT_THAT(Only<PersistNode>(rig.Step(NodeDeleted{"a"})), IsEmpty());
  EXPECT_TRUE(rig.cluster().membership().MarkOf("a").cordoned);
}

TEST_F(ClusterTest, ADeviceAtFaultIsGivenToNobodyUntilItIsWell) {
  Step(Join("a", 2));
  Step(DeviceFaultsChanged{.node = "a", .faults = {{"cpu:0", "broken"}}});

  EXPECT_THAT(Started(Step(Submit(1, {.workers_min = 2}))), IsEmpty());
  EXPECT_EQ(cluster_.Find(JobId{1})->state_reason, "needs 2 devices; 1 free, 1 at fault");
  EXPECT_THAT(Started(Step(DeviceFaultsChanged{.node = "a"})),
              ElementsAre("alpha-1@a/cpu:0", "alpha-1@a/cpu:1"));
}

TEST_F(ClusterTest, ADeviceOfACordonedNodeCountsOnceWhereItIsAtFaultToo) {
  Step(Join("a", 1));
  Step(DeviceFaultsChanged{.node = "a", .faults = {{"cpu:0", "broken"}}});
  Step(NodeMarked{{.name = "a", .cordoned = true}});

  Step(Submit(1, {.workers_min = 1}));

  EXPECT_EQ(cluster_.Find(JobId{1})->state_reason, "needs 1 device; 0 free, 1 on cordoned nodes");
}

TEST_F(ClusterTest, AJobOnADeviceAtFaultIsLeftAlone) {
  Step(Join("a", 2));
  Step(Submit(1, {.workers_min = 1, .workers_max = 1}));

  const Actions actions =
      Step(DeviceFaultsChanged{.node = "a", .faults = {{"cpu:0", "broken"}, {"cpu:1", "too"}}});

  EXPECT_THAT(Stopped(actions), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(actions), IsEmpty());
  // Once its worker has failed by itself, there is no other device for it.
  Step(WorkerExited{.worker = WorkerId{1}, .signal = 9});
  EXPECT_THAT(Started(Step(Submit(2, {.workers_min = 1}))), IsEmpty());
}

TEST_F(ClusterTest, ANewNodeLetsTheQueueMove) {
  Step(Submit(1, {.workers_min = 2, .workers_max = 2}));
  Step(Submit(2, {.workers_min = 1}));

  EXPECT_THAT(Started(Step(Join("a", 3))),
              ElementsAre("alpha-1@a/cpu:0", "alpha-1@a/cpu:1", "alpha-2@a/cpu:2"));
}

TEST_F(ClusterTest, AJobForCpusLeavesCudaAlone) {
  NodeJoined node{.node = "a", .devices = Devices("cuda", 1)};
  node.devices.push_back({.name = "cpu:0"});
  Step(node);

  EXPECT_THAT(Started(Step(Submit(1, {.device = DeviceKind::kCpu}))),
              ElementsAre("alpha-1@a/cpu:0"));
  EXPECT_THAT(Started(Step(Submit(2, {.device = DeviceKind::kStandard}))),
              ElementsAre("alpha-2@a/cuda:0"));
}

TEST_F(ClusterTest, DevicesAreFreeOnlyOnceTheirWorkersAreGone) {
  Step(Join("a", 2));
  Step(Submit(1, {.workers_min = 2}));
  Step(Submit(2, {.workers_min = 2}));
  const Actions cancelled = Step(JobCancelled{.job = JobId{1}});
  EXPECT_THAT(Only<StopWorker>(cancelled), SizeIs(2));
  EXPECT_THAT(Started(cancelled), IsEmpty());

  EXPECT_THAT(Started(Step(WorkerExited{.worker = WorkerId{1}})), IsEmpty());
  EXPECT_THAT(Started(Step(WorkerExited{.worker = WorkerId{2}})), SizeIs(2));
}

TEST_F(ClusterTest, AJobThatIsOverIsForgotten) {
  Step(Join("a", 1));
  Step(Submit(1, {}));

  Step(JobCancelled{.job = JobId{1}});
  EXPECT_EQ(cluster_.Find(JobId{1}), nullptr);
  EXPECT_THAT(cluster_.Jobs(), IsEmpty());
  EXPECT_NE(cluster_.membership().HolderOf("a", "cpu:0"), nullptr);
  Step(WorkerExited{.worker = WorkerId{1}});

  EXPECT_EQ(cluster_.membership().HolderOf("a", "cpu:0"), nullptr);
}

TEST_F(ClusterTest, AWorkerThatNoJobKnowsIsStoppedOnce) {
  NodeJoined node = Join("a", 1);
  node.running_workers = {WorkerId{9}};

  EXPECT_THAT(Only<StopWorker>(Step(node)), SizeIs(1));
  node.same_incarnation = true;
  EXPECT_THAT(Only<StopWorker>(Step(node)), IsEmpty());
  EXPECT_THAT(Started(Step(Submit(1, {}))), IsEmpty());

  const Actions exited = Step(WorkerExited{.worker = WorkerId{9}});
  ASSERT_THAT(Only<StartWorker>(exited), SizeIs(1));
  EXPECT_EQ(Only<StartWorker>(exited)[0].worker, WorkerId{1});
}

TEST_F(ClusterTest, AWorkerOfALostNodeThatComesBackIsAStray) {
  Step(Join("a", 1));
  Step(Submit(1, {}));
  Step(NodeLost{.node = "a", .reason = "no heartbeat"});
  NodeJoined back = Join("a", 1);
  back.same_incarnation = true;
  back.running_workers = {WorkerId{1}};

  const Actions actions = Step(back);

  ASSERT_THAT(Only<StopWorker>(actions), SizeIs(1));
  EXPECT_EQ(Only<StopWorker>(actions)[0].worker, WorkerId{1});
}

TEST_F(ClusterTest, WorkerIdsAreTheJobsOwn) {
  Step(Join("a", 1));

  const Actions actions = Step(Submit(3, {}));

  EXPECT_EQ(Only<StartWorker>(actions)[0].worker, WorkerId{2001});
}

TEST_F(ClusterTest, AnIdThatAStrayBearsIsNotGivenAgain) {
  NodeJoined node = Join("a", 1);
  node.running_workers = {WorkerId{1}};
  Step(node);
  Step(Join("b", 1));

  EXPECT_EQ(Only<StartWorker>(Step(Submit(1, {})))[0].worker, WorkerId{2});
}

TEST_F(ClusterTest, ALargeJobsIdsDoNotReachThoseOfTheNext) {
  Step(Join("a", 1002));
  Step(Submit(1, {.workers_max = 1001}));

  const JobRecord& first = *cluster_.Find(JobId{1});
  const JobRecord restarted = [&] {
    JobRecord record = first;
    record.state = JobState::kStarting;
    return record;
  }();
  EXPECT_EQ(first.members[999].worker, WorkerId{1000});
  EXPECT_GT(first.members[1000].worker, WorkerId{1u << 30});
  EXPECT_EQ(Only<StartWorker>(Step(Submit(2, {})))[0].worker, WorkerId{1001});

  Cluster next(kWallOffset);
  next.Restore(restarted, At(1));
  const Actions again = next.Step(Join("a", 1), At(2));
  EXPECT_EQ(Only<StartWorker>(again)[0].worker.value, first.members[1000].worker.value + 1);
}

TEST_F(ClusterTest, AnUnknownPolicyIsRefusedWithItsField) {
  const Actions actions = Step(Submit(1, {.adapt = {.batch_policy = "magic"}}));

  const JobRecord last = Only<PersistJob>(actions).back().record;
  EXPECT_EQ(last.state, JobState::kFailed);
  EXPECT_EQ(last.error_field, "adapt.batch.policy");
  EXPECT_THAT(cluster_.Jobs(), IsEmpty());
}

TEST_F(ClusterTest, ARestoredQueueKeepsItsOrder) {
  JobRecord second = Job(2, {.workers_min = 1});
  JobRecord first = Job(1, {.workers_min = 2});
  EXPECT_THAT(cluster_.Restore(second, At(0)), IsEmpty());
  EXPECT_THAT(cluster_.Restore(first, At(0)), IsEmpty());

  EXPECT_THAT(Started(Step(Join("a", 1))), IsEmpty());
  EXPECT_THAT(Started(Step(Join("b", 2))),
              ElementsAre("alpha-1@a/cpu:0", "alpha-1@b/cpu:0", "alpha-2@b/cpu:1"));
}

TEST_F(ClusterTest, ADeviceThatAWorkerLeftMayBeAnotherJobsAfterARestart) {
  Step(Join("a", 2));
  Step(Submit(1, {.workers_min = 2, .workers_max = 2}));
  Step(WorkerExited{.worker = WorkerId{1}, .exit_code = 1});  // the verdict is still to come
  Step(Submit(2, {}));
  const JobRecord first = *cluster_.Find(JobId{1});
  JobRecord second = *cluster_.Find(JobId{2});
  JobRecord running = first;
  running.state = second.state = JobState::kRunning;
  running.progress.plan.batch_sizes = {1, 1};
  second.progress.plan.batch_sizes = {1};
  Cluster restarted(kWallOffset);
  restarted.Restore(running, At(100));
  restarted.Restore(second, At(100));
  NodeJoined back = Join("a", 2);
  back.running_workers = {first.members[1].worker, second.members[0].worker};

  restarted.Step(back, At(101));

  EXPECT_EQ(restarted.membership().HolderOf("a", "cpu:0")->job, JobId{2});
  EXPECT_EQ(restarted.membership().HolderOf("a", "cpu:1")->job, JobId{1});
}

// All that was needed was durable but the job's end.
TEST_F(ClusterTest, AJobThatIsOverAtOnceAfterARestartGivesItsDevicesBack) {
  Step(Join("a", 1));
  Step(Submit(1, {}));
  JobRecord record = *cluster_.Find(JobId{1});
  record.state = JobState::kStopping;
  record.discard = true;
  record.progress.plan.batch_sizes = {1};
  record.ending.finished = {{.rank = 0}};
  Cluster restarted(kWallOffset);
  restarted.Restore(record, At(100));
  ASSERT_EQ(restarted.Find(JobId{1}), nullptr);
  NodeJoined back = Join("a", 1);
  back.ended_workers = {record.members[0].worker};
  restarted.Step(back, At(101));
  ASSERT_NE(restarted.membership().HolderOf("a", "cpu:0"), nullptr);

  restarted.Step(WorkerExited{.worker = record.members[0].worker}, At(101));

  EXPECT_EQ(restarted.membership().HolderOf("a", "cpu:0"), nullptr);
}

TEST_F(ClusterTest, AFinishedRecordIsNotTakenUp) {
  JobRecord record = Job(1);
  record.state = JobState::kSucceeded;

  EXPECT_THAT(cluster_.Restore(record, At(0)), IsEmpty());
  EXPECT_EQ(cluster_.Find(JobId{1}), nullptr);
}

TEST_F(ClusterTest, WhatConcernsNobodyDoesNothing) {
  EXPECT_THAT(Step(Said(7, Ready())), IsEmpty());
  EXPECT_THAT(Step(WorkerExited{.worker = WorkerId{7}}), IsEmpty());
  EXPECT_THAT(Step(JobCancelled{.job = JobId{7}}), IsEmpty());
  EXPECT_THAT(Step(ArtifactStored{.job = JobId{7}}), IsEmpty());
  EXPECT_THAT(Step(NodeLost{.node = "z"}), IsEmpty());
  EXPECT_THAT(Step(Ticked{}), IsEmpty());
}

TEST_F(ClusterTest, AWakeIsAskedForOnceAndAgainAfterItCame) {
  Step(Join("a", 1));
  const Actions first = Step(Submit(1, {}));
  ASSERT_THAT(Only<WakeAt>(first), SizeIs(1));
  EXPECT_THAT(Only<WakeAt>(Step(Join("b", 1))), IsEmpty());

  const Actions early = Step(Ticked{});

  ASSERT_THAT(Only<WakeAt>(early), SizeIs(1));
  EXPECT_EQ(Only<WakeAt>(early)[0].time, Only<WakeAt>(first)[0].time);
}

}  // namespace
}  // namespace tactus::job
