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
  Step(Join("a", 2));

  EXPECT_THAT(Submit(InArray(1)), ElementsAre("alpha-1@a/cpu:0"));
  EXPECT_THAT(Submit(InArray(2)), ElementsAre("alpha-2@a/cpu:1")) << "what is free comes first";
  EXPECT_THAT(Submit(InArray(3)), ElementsAre("alpha-3@a/cpu:0"));
  EXPECT_THAT(Submit(InArray(4)), ElementsAre("alpha-4@a/cpu:1")) << "where the fewest are";
  EXPECT_THAT(Submit(InArray(5, kOne, "y")), IsEmpty());
  EXPECT_THAT(Submit(InArray(6)), IsEmpty()) << "behind one that waits";
}

TEST_F(ArraysTest, TheOrderSaysWhichArray) {
  Step(Join("a", 1));

  const Actions first = Step(JobSubmitted{InArray(1)});
  const Actions second = Step(JobSubmitted{InArray(2)});

  EXPECT_EQ(Only<StartWorker>(first).at(0).array, ArrayOf(InArray(1)));
  EXPECT_EQ(Only<StartWorker>(second).at(0).array, ArrayOf(InArray(1)));
}

TEST_F(ArraysTest, ADeviceTakesSoManyAndIsFreeWhenAllHaveLeft) {
  Step(Join("a", 1));
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
  Step(Join("a", 1));
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
  Step(Join("a", 1));
  for (std::uint64_t id = 1; id <= 2; ++id) Submit(InArray(id));
  const std::vector<WorkerId> workers = {WorkerOf(1), WorkerOf(2)};

  EXPECT_THAT(Submit(Job(9, {.workers_min = 1, .priority = 5})), IsEmpty());
  EXPECT_EQ(StateOf(1), JobState::kSuspending);
  EXPECT_THAT(Started(Step(WorkerExited{.worker = workers[0]})), IsEmpty());
  EXPECT_EQ(StateOf(1), JobState::kQueued) << "it does not go back";
  EXPECT_EQ(StateOf(2), JobState::kSuspending);
  EXPECT_THAT(Started(Step(WorkerExited{.worker = workers[1]})), ElementsAre("alpha-9@a/cpu:0"));
}

TEST_F(ArraysTest, ADeviceThatIsToGetNoMoreWorkTakesNobodyIn) {
  Step(Join("a", 1));
  Submit(InArray(1));
  Step(NodeMarked{{.name = "a", .cordoned = true}});

  EXPECT_THAT(Submit(InArray(2)), IsEmpty());
  EXPECT_THAT(Started(Step(NodeMarked{{.name = "a"}})), ElementsAre("alpha-2@a/cpu:0"));
}

TEST_F(ArraysTest, ARestartedCoordinatorFindsAllOfThemOnTheirDevice) {
  Step(Join("a", 1));
  for (std::uint64_t id = 1; id <= 2; ++id) Submit(InArray(id));
  Cluster restarted(kWallOffset);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    JobRecord running = *cluster_.Find(JobId{id});
    running.state = JobState::kRunning;
    running.progress.plan.batch_sizes = {1};
    restarted.Restore(running, At(100));
  }
  NodeJoined joined = Join("a", 1);
  joined.running_workers = {WorkerOf(1), WorkerOf(2)};

  restarted.Step(joined, At(101));

  EXPECT_EQ(restarted.membership().HoldersOf("a", "cpu:0").size(), 2u);
}

}  // namespace
}  // namespace tactus::job
