// Workers that wait beside a group, to take a lost one's place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/resize_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A job of at most three workers, which has them: 1 and 2 on node a compute 100 samples a second,
// 3 on node b 50. Node c has two more devices.
class JobSparesTest : public JobResizeTest {
 protected:
  JobSparesTest()
      : JobResizeTest(Job(
            1, {.workers_min = 2, .workers_max = 3, .spares = 1, .priority = 0, .retries = 0})) {}

  // It takes 32 samples in 32 s from now on.
  void BecomeSlow(std::uint32_t slow) {
    for (std::uint64_t round = 1; round < 30; ++round) {
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        ReportMessage report =
            ReportOf(rank, {.round = round, .plan_version = 1, .batch_sizes = {32, 32, 32}}, 1);
        report.report.round_seconds = 33;
        if (rank == slow) report.report.compute_seconds = 32;
        rig_.Step(Said(rank + 1, report));
      }
    }
  }
};

TEST_F(JobSparesTest, OneLoadsBesideTheWholeGroupAndWaits) {
  const std::vector<StartWorker> starts = Only<StartWorker>(Grow());
  ASSERT_THAT(starts, SizeIs(1)) << "two devices are free";
  EXPECT_EQ(starts[0].worker, WorkerId{4});
  EXPECT_EQ(record().state_reason,
            "training on 3 workers; worker 4 on node c loading, to be spare");

  EXPECT_THAT(Sent<StopMessage>(SayReady(4, 60)), IsEmpty()) << "the group is whole";
  EXPECT_EQ(record().state_reason, "training on 3 workers; worker 4 on node c spare");
  EXPECT_THAT(Only<StartWorker>(Wait(1000)), IsEmpty());
  EXPECT_THAT(Stopped(Wait(1000)), IsEmpty()) << "it waits for as long as it takes";
  EXPECT_EQ(record().resizes, 0u);
}

TEST_F(JobSparesTest, ItTakesALostOnesPlaceAndAnotherOneLoads) {
  Grow();
  SayReady(4, 60);
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Regroup());

  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_THAT(groups[0].rounds, ElementsAre(1u, 1u, 0u));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{4}));
  EXPECT_THAT(Joiners(), IsEmpty());
  EXPECT_EQ(record().regroups, 1u);
  Meet();
  Report(1);
  EXPECT_EQ(record().state_reason, "training on 3 workers");

  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(11));
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].worker, WorkerId{5});
}

TEST_F(JobSparesTest, WhoseShareAddsLeastIsTheSpare) {
  Grow();
  const std::vector<StopMessage> asked = Sent<StopMessage>(SayReady(4, 200));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_EQ(asked[0].reason, "worker 4 on node c joins, in place of worker 3 on node b");
  const Actions formed = Leave(7);

  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{4}));
  EXPECT_THAT(Joiners(), ElementsAre(WorkerId{3}));
  EXPECT_THAT(Stopped(formed), IsEmpty()) << "the former member keeps its process";
  ASSERT_NE(rig_.cluster().membership().HolderOf("b", "cpu:0"), nullptr);
  EXPECT_EQ(record().resizes, 1u);
  Meet();
  Report(7);
  EXPECT_EQ(record().state_reason, "training on 3 workers; worker 3 on node b spare");

  Kill(4);
  Lose(1, 9);
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Lose(2, 9));
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_THAT(groups[0].rounds, ElementsAre(9u, 9u, 7u)) << "it says so itself, too";
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST_F(JobSparesTest, AMemberThatBecameSlowIsFoundOutLater) {
  Grow();
  SayReady(4, 60);
  BecomeSlow(1);
  const std::vector<StopMessage> asked = Sent<StopMessage>(Wait(31));

  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_EQ(asked[0].reason, "worker 4 on node c joins, in place of worker 2 on node a");
  EXPECT_THAT(asked[0].leaving, ElementsAre(1u));
  EXPECT_THAT(Sent<GroupMessage>(Leave(30)), SizeIs(3));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{3}, WorkerId{4}));
  EXPECT_THAT(Joiners(), ElementsAre(WorkerId{2}));
}

TEST_F(JobSparesTest, TheFirstMemberHasFilesUnderWayAndStays) {
  Grow();
  SayReady(4, 60);
  BecomeSlow(0);

  EXPECT_THAT(Sent<StopMessage>(Wait(1000)), IsEmpty());
}

TEST_F(JobSparesTest, ItGoesFirstWhereOthersNeedDevices) {
  rig_.Step(Join("c", 1));
  Wait(5);
  SayReady(4, 60);
  Wait(31);
  const Actions asked = rig_.Step(
      JobSubmitted{Job(2, {.name = "beta", .workers_min = 1, .workers_max = 1, .priority = 1})});

  EXPECT_THAT(Stopped(asked), ElementsAre(WorkerId{4}));
  EXPECT_THAT(Sent<StopMessage>(asked), IsEmpty()) << "the group trains on";
  EXPECT_THAT(Joiners(), IsEmpty());
}

TEST_F(JobSparesTest, ItTakesThePlaceOfOneWhoseNodeIsDrained) {
  JobSettings settings = record().settings;
  settings.workers_min = 3;
  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});
  Grow();
  SayReady(4, 60);
  const std::vector<StopMessage> asked = Sent<StopMessage>(
      rig_.Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(20)}}));

  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_TRUE(asked[0].regroup) << "three are left, with the spare";
  EXPECT_THAT(Sent<GroupMessage>(Leave(5)), SizeIs(3));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{4}));
  EXPECT_EQ(record().state, JobState::kRunning);
}

TEST_F(JobSparesTest, OneThatIsKilledIsNoneOfTheGroupsConcern) {
  Grow();
  SayReady(4, 60);
  const Actions killed = Kill(4);

  EXPECT_THAT(Sent<StopMessage>(killed), IsEmpty());
  EXPECT_THAT(Joiners(), IsEmpty());
  EXPECT_THAT(record().state_reason, HasSubstr("did not join: worker 4 on node c"));
  EXPECT_THAT(Only<StartWorker>(Wait(11)), SizeIs(1));
}

TEST_F(JobSparesTest, AUserMayWantNoneAnyMore) {
  Grow();
  SayReady(4, 60);
  JobSettings settings = record().settings;
  settings.spares = 0;
  const Actions updated = rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});

  EXPECT_THAT(Stopped(updated), ElementsAre(WorkerId{4}));
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().state_reason, "training on 3 workers");
  rig_.Step(WorkerExited{.worker = WorkerId{4}, .signal = 15});
  EXPECT_THAT(Only<StartWorker>(Wait(1000)), IsEmpty());
}

TEST_F(JobSparesTest, ItEndsWithItsJob) {
  Grow();
  SayReady(4, 60);

  EXPECT_THAT(Stopped(rig_.Step(Said(1, Finished(0)))), ElementsAre(WorkerId{4}));
}

TEST_F(JobSparesTest, ACoordinatorThatRestartsHasAnotherOneLoad) {
  Grow();
  SayReady(4, 60);
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});

  EXPECT_THAT(Stopped(rig_.Rejoin("c", 1, {WorkerId{4}})), ElementsAre(WorkerId{4}));
  rig_.Step(WorkerExited{.worker = WorkerId{4}, .signal = 15});
  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(6));
  ASSERT_THAT(starts, SizeIs(1));
  EXPECT_EQ(starts[0].worker, WorkerId{5});
}

}  // namespace
}  // namespace tactus::job
