// Jobs that share a device.

#include "coordinator/job/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/cluster.h"
#include "protocol/arrays.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const JobSettings kOne = {.workers_min = 1, .workers_max = 1, .shape = "s"};

JobRecord InArray(std::uint64_t id, const JobSettings& settings = kOne,
                  const std::string& array = "x") {
  JobRecord record = Job(id, settings);
  record.labels["array"] = array;
  return record;
}

// A node whose agent knows arrays.
NodeJoined Knowing(const std::string& node, int cpus) {
  NodeJoined event = Join(node, cpus);
  event.traits.arrays = true;
  return event;
}

TEST(ArrayOfTest, IsByLabelShapeAndOwner) {
  const JobRecord one = InArray(1);
  EXPECT_FALSE(ArrayOf(one).empty());
  EXPECT_EQ(ArrayOf(one), ArrayOf(InArray(2)));
  EXPECT_NE(ArrayOf(one), ArrayOf(InArray(2, kOne, "y")));
  EXPECT_NE(ArrayOf(one), ArrayOf(InArray(2, {.workers_max = 1, .shape = "t"})));
  JobRecord other = InArray(2);
  other.owner = "user/bob";
  EXPECT_NE(ArrayOf(one), ArrayOf(other));
}

TEST(ArrayOfTest, IsEmptyOfWhoSharesWithNobody) {
  EXPECT_EQ(ArrayOf(Job(1, kOne)), "") << "no label";
  EXPECT_EQ(ArrayOf(InArray(1, {.workers_max = 1})), "") << "no shape";
  EXPECT_EQ(ArrayOf(InArray(1, {.workers_max = 2, .shape = "s"})), "");
}

class ArraysTest : public testing::Test {
 protected:
  Actions Step(const Event& event) { return cluster_.Step(event, At(seconds_ += 1)); }
  std::vector<std::string> Submit(const JobRecord& record) {
    return Started(Step(JobSubmitted{record}));
  }
  static std::vector<std::string> Started(const Actions& actions) {
    std::vector<std::string> starts;
    for (const StartWorker& start : Only<StartWorker>(actions)) {
      starts.push_back(start.job_name + "@" + start.node + "/" + start.device);
    }
    return starts;
  }
  WorkerId WorkerOf(std::uint64_t job) { return cluster_.Find(JobId{job})->members.front().worker; }
  JobState StateOf(std::uint64_t job) { return cluster_.Find(JobId{job})->state; }
  std::size_t HoldersOf(const std::string& device) {
    return cluster_.membership().HoldersOf("a", device).size();
  }

  Cluster cluster_{kWallOffset};
  double seconds_ = 0;
};

TEST_F(ArraysTest, ThoseThatFindNoDeviceEnterOneOfTheirArray) {
  Step(Knowing("a", 2));

  EXPECT_THAT(Submit(InArray(1)), ElementsAre("alpha-1@a/cpu:0"));
  EXPECT_THAT(Submit(InArray(2)), ElementsAre("alpha-2@a/cpu:1")) << "what is free comes first";
  EXPECT_THAT(Submit(InArray(3)), ElementsAre("alpha-3@a/cpu:0"));
  EXPECT_THAT(Submit(InArray(4)), ElementsAre("alpha-4@a/cpu:1")) << "where the fewest are";
  EXPECT_THAT(Submit(InArray(5, kOne, "y")), IsEmpty());
  EXPECT_THAT(Submit(InArray(6)), IsEmpty()) << "behind one that waits";
}

TEST_F(ArraysTest, TheOrderSaysWhichArray) {
  Step(Knowing("a", 1));

  const Actions first = Step(JobSubmitted{InArray(1)});
  const Actions second = Step(JobSubmitted{InArray(2)});

  EXPECT_EQ(Only<StartWorker>(first).at(0).array, ArrayOf(InArray(1)));
  EXPECT_EQ(Only<StartWorker>(second).at(0).array, ArrayOf(InArray(1)));
}

TEST_F(ArraysTest, ADeviceTakesSoManyAndIsFreeWhenAllHaveLeft) {
  Step(Knowing("a", 1));
  for (std::uint64_t id = 1; id <= protocol::kArrayJobsMax; ++id) {
    EXPECT_THAT(Submit(InArray(id)), testing::SizeIs(1));
  }
  EXPECT_THAT(Submit(InArray(99)), IsEmpty());
  EXPECT_EQ(HoldersOf("cpu:0"), protocol::kArrayJobsMax);

  const WorkerId gone = WorkerOf(3);
  Step(JobCancelled{.job = JobId{3}});
  EXPECT_THAT(Started(Step(WorkerExited{.worker = gone})), ElementsAre("alpha-99@a/cpu:0"));
  EXPECT_EQ(HoldersOf("cpu:0"), protocol::kArrayJobsMax);
  EXPECT_FALSE(cluster_.membership().AnyFree());
}

TEST_F(ArraysTest, WhenTheProcessDiesTheFirstThatIsTriedAgainTakesTheOthersIn) {
  Step(Knowing("a", 1));
  for (std::uint64_t id = 1; id <= 3; ++id) Submit(InArray(id));
  std::vector<WorkerId> workers = {WorkerOf(1), WorkerOf(2), WorkerOf(3)};
  for (const WorkerId worker : workers) Step(WorkerExited{.worker = worker, .signal = 9});
  EXPECT_EQ(HoldersOf("cpu:0"), 0u);
  EXPECT_EQ(StateOf(1), JobState::kQueued);

  seconds_ += 600;
  const Actions again = Step(Ticked{});

  EXPECT_THAT(Started(again), ElementsAre("alpha-1@a/cpu:0", "alpha-2@a/cpu:0", "alpha-3@a/cpu:0"));
}

// One after the other, as they come first.
TEST_F(ArraysTest, AllMakeRoomForWhoComesBeforeThem) {
  Step(Knowing("a", 1));
  for (std::uint64_t id = 1; id <= 2; ++id) Submit(InArray(id));
  const std::vector<WorkerId> workers = {WorkerOf(1), WorkerOf(2)};

  EXPECT_THAT(Submit(Job(9, {.workers_min = 1, .priority = 5})), IsEmpty());
  EXPECT_EQ(StateOf(1), JobState::kSuspending);
  EXPECT_THAT(Started(Step(WorkerExited{.worker = workers[0]})), IsEmpty());
  EXPECT_EQ(StateOf(1), JobState::kQueued) << "it does not go back";
  EXPECT_EQ(StateOf(2), JobState::kSuspending);
  EXPECT_THAT(Started(Step(WorkerExited{.worker = workers[1]})), ElementsAre("alpha-9@a/cpu:0"));
}

// Else each displaces the other in vain, again and again.
TEST_F(ArraysTest, NobodyMakesRoomWhereOneOfTheOthersNeedNot) {
  Step(Knowing("a", 1));
  JobSettings important = kOne;
  important.priority = 9;
  Submit(InArray(1));
  Submit(InArray(2, important));

  EXPECT_THAT(Submit(Job(9, {.workers_min = 1, .priority = 5})), IsEmpty());

  EXPECT_EQ(StateOf(1), JobState::kStarting);
  EXPECT_EQ(StateOf(2), JobState::kStarting);
  Step(JobCancelled{.job = JobId{2}, .discard = true});
  EXPECT_EQ(StateOf(1), JobState::kSuspending) << "it alone stands in the way now";
}

TEST_F(ArraysTest, AnAgentOfBeforeThemGetsOneJobADevice) {
  Step(Join("a", 1));
  Submit(InArray(1));
  EXPECT_THAT(Submit(InArray(2)), IsEmpty());

  const WorkerId first = WorkerOf(1);
  NodeJoined renewed = Knowing("a", 1);
  renewed.running_workers = {first};
  EXPECT_THAT(Started(Step(renewed)), ElementsAre("alpha-2@a/cpu:0")) << "it was replaced";
}

// ---- How many there is memory for

class LimitedArraysTest : public ArraysTest {
 protected:
  LimitedArraysTest() {
    NodeJoined joined = Knowing("a", 1);
    joined.traits.worker_memory_bytes = 4000;
    Step(joined);
  }
  Actions Report(std::uint64_t job, std::uint64_t round, std::uint64_t used) {
    return Step(WorkerSaid{
        .worker = WorkerOf(job),
        .message =
            ReportMessage{.generation = 1, .report = {.round = round}, .memory_used_bytes = used}});
  }
};

TEST_F(LimitedArraysTest, OneTrainsFirstThenAsManyAsItsNeedLeavesRoomFor) {
  EXPECT_THAT(Submit(InArray(1)), testing::SizeIs(1));
  for (std::uint64_t id = 2; id <= 6; ++id) EXPECT_THAT(Submit(InArray(id)), IsEmpty());

  // Three quarters of 4000 are four times as much.
  EXPECT_THAT(Started(Report(1, 0, 750)),
              ElementsAre("alpha-2@a/cpu:0", "alpha-3@a/cpu:0", "alpha-4@a/cpu:0"));
  EXPECT_THAT(Started(Report(1, 1, 750)), IsEmpty());
  EXPECT_THAT(Started(Report(2, 0, 1200)), IsEmpty()) << "not all have told";
  EXPECT_THAT(Started(Report(3, 0, 1800)), IsEmpty());
  // Together they need 2000, so that a fifth and a sixth have room.
  EXPECT_THAT(Started(Report(4, 0, 2000)), ElementsAre("alpha-5@a/cpu:0", "alpha-6@a/cpu:0"));
}

TEST_F(LimitedArraysTest, WhoLeavesMakesRoomForAnotherWhateverLibrariesKeep) {
  Submit(InArray(1));
  Submit(InArray(2));
  Report(1, 0, 1500);
  ASSERT_EQ(HoldersOf("cpu:0"), 2u);
  Report(2, 0, 3000);
  EXPECT_THAT(Submit(InArray(3)), IsEmpty());

  EXPECT_THAT(Started(Step(WorkerExited{.worker = WorkerOf(2), .exit_code = 1})),
              ElementsAre("alpha-3@a/cpu:0"));
  EXPECT_THAT(Submit(InArray(4)), IsEmpty());
}

TEST_F(LimitedArraysTest, WhatIsKnownGoesWithTheLast) {
  Submit(InArray(1));
  Report(1, 0, 100);
  const WorkerId gone = WorkerOf(1);
  Step(JobCancelled{.job = JobId{1}, .discard = true});
  Step(WorkerExited{.worker = gone});

  EXPECT_THAT(Submit(InArray(2)), testing::SizeIs(1));
  EXPECT_THAT(Submit(InArray(3)), IsEmpty());
}

TEST(RoomForTest, IsTheDevicesOwnMemoryOfAGpuAndTheProcessesOfAHost) {
  Membership membership;
  std::vector<DeviceRecord> devices = {
      {.name = "cpu:0", .memory_bytes = 64},
      {.name = "cuda:0", .kind = DeviceKind::kCuda},
      {.name = "cuda:1", .kind = DeviceKind::kCuda, .memory_bytes = 8000}};
  membership.Join("a", devices, {.arrays = true});
  membership.Join("b", devices, {.arrays = true, .worker_memory_bytes = 1000});

  EXPECT_EQ(membership.RoomFor("a", "cpu:0"), SIZE_MAX) << "of a host without a limit";
  EXPECT_EQ(membership.RoomFor("b", "cpu:0"), 1u);
  EXPECT_EQ(membership.RoomFor("b", "cuda:0"), SIZE_MAX) << "not known";
  EXPECT_EQ(membership.RoomFor("b", "cuda:1"), 1u);
  membership.Hold({.worker = WorkerId{7}, .node = "b", .device = "cuda:1", .array = "x"}, JobId{1},
                  "alpha-1");
  EXPECT_FALSE(membership.NoteMemory(WorkerId{8}, 100)) << "it has no device";
  EXPECT_FALSE(membership.NoteMemory(WorkerId{7}, 0)) << "it does not know";
  EXPECT_TRUE(membership.NoteMemory(WorkerId{7}, 1500));
  EXPECT_FALSE(membership.NoteMemory(WorkerId{7}, 2000)) << "the same, and more";
  EXPECT_EQ(membership.RoomFor("b", "cuda:1"), 3u);
  EXPECT_FALSE(membership.NoteMemory(WorkerId{7}, 80000));
  EXPECT_EQ(membership.RoomFor("b", "cuda:1"), 1u) << "who is there is there";
}

TEST_F(ArraysTest, ADeviceThatIsToGetNoMoreWorkTakesNobodyIn) {
  Step(Knowing("a", 1));
  Submit(InArray(1));
  Step(NodeMarked{{.name = "a", .cordoned = true}});

  EXPECT_THAT(Submit(InArray(2)), IsEmpty());
  EXPECT_THAT(Started(Step(NodeMarked{{.name = "a"}})), ElementsAre("alpha-2@a/cpu:0"));
}

TEST_F(ArraysTest, ARestartedCoordinatorFindsAllOfThemOnTheirDevice) {
  Step(Knowing("a", 1));
  for (std::uint64_t id = 1; id <= 2; ++id) Submit(InArray(id));
  Cluster restarted(kWallOffset);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    JobRecord running = *cluster_.Find(JobId{id});
    running.state = JobState::kRunning;
    running.progress.plan.batch_sizes = {1};
    restarted.Restore(running, At(100));
  }
  NodeJoined joined = Knowing("a", 1);
  joined.running_workers = {WorkerOf(1), WorkerOf(2)};

  restarted.Step(joined, At(101));

  EXPECT_EQ(restarted.membership().HoldersOf("a", "cpu:0").size(), 2u);
}

TEST_F(ArraysTest, ANodeThatIsBackFindsAllOfThemWhereTheyWere) {
  Step(Knowing("a", 1));
  NodeJoined back = Knowing("a", 1);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    Submit(InArray(id));
    back.running_workers.push_back(WorkerOf(id));
  }
  Step(NodeUnreachable{.node = "a"});

  Step(back);

  EXPECT_EQ(HoldersOf("cpu:0"), 2u);
}

// What a job was started as is what it holds its device as, whatever has become of its record.
TEST_F(ArraysTest, AChangeOfARunningJobChangesNothingOfItsSeat) {
  Step(Knowing("a", 1));
  for (std::uint64_t id = 1; id <= 2; ++id) Submit(InArray(id));
  JobSettings changed = kOne;
  changed.shape = "of another batch";
  Step(JobUpdated{.job = JobId{1}, .spec = "spec", .settings = changed, .labels = {}});
  ASSERT_EQ(ArrayOf(*cluster_.Find(JobId{1})), "");
  EXPECT_THAT(Submit(InArray(3)), ElementsAre("alpha-3@a/cpu:0"));

  Cluster restarted(kWallOffset);
  NodeJoined joined = Knowing("a", 1);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    JobRecord running = *cluster_.Find(JobId{id});
    running.state = JobState::kRunning;
    running.progress.plan.batch_sizes = {1};
    restarted.Restore(running, At(100));
    joined.running_workers.push_back(WorkerOf(id));
  }
  restarted.Step(joined, At(101));

  EXPECT_EQ(restarted.membership().HoldersOf("a", "cpu:0").size(), 3u);
  EXPECT_THAT(Started(restarted.Step(JobSubmitted{InArray(4)}, At(102))),
              ElementsAre("alpha-4@a/cpu:0"));
}

}  // namespace
}  // namespace tactus::job
