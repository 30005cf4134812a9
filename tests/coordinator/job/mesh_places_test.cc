#include "coordinator/job/mesh_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<MemberRecord> On(const std::vector<std::string>& places) {
  std::vector<MemberRecord> members;
  for (const std::string& place : places) {
    const std::size_t colon = place.find(':');
    members.push_back({.node = place.substr(0, colon), .device = place});
    if (place.ends_with("slow")) members.back().emulated_speed = 0.25;
  }
  return members;
}

std::vector<std::string> PlacesOf(const std::vector<MemberRecord>& members) {
  std::vector<std::string> places;
  for (const MemberRecord& member : members) places.push_back(member.device);
  return places;
}

TEST(MeshPlacesTest, MeshesLieWithinNodesAsFarAsMayBe) {
  const std::vector<MemberRecord> placed =
      PlacedInMeshes(On({"a:0", "a:1", "a:2", "b:0", "b:1", "b:2"}), 2);

  EXPECT_THAT(PlacesOf(placed), ElementsAre("a:0", "a:1", "b:0", "b:1", "a:2", "b:2"));
  EXPECT_EQ(MeshWords({.mesh_devices = 2, .mesh = "1d, 2 devices"}, placed),
            "1d, 2 devices; 3 replicas, 1 over several nodes, as one has too few devices for it, "
            "of equal devices");
}

TEST(MeshPlacesTest, EqualDevicesMakeOneMesh) {
  const std::vector<MemberRecord> placed =
      PlacedInMeshes(On({"a:0", "a:1 slow", "b:0", "b:1 slow"}), 2);

  EXPECT_THAT(PlacesOf(placed), ElementsAre("a:0", "b:0", "a:1 slow", "b:1 slow"));
}

TEST(MeshPlacesTest, WhatIsLeftMakesAnUnequalOne) {
  const std::vector<MemberRecord> placed = PlacedInMeshes(On({"a:0", "a:1", "a:2", "a:3 slow"}), 4);

  ASSERT_THAT(placed, SizeIs(4));
  EXPECT_THAT(MeshWords({.mesh_devices = 4, .mesh = "m"}, placed),
              HasSubstr("1 replica, within one node, 1 of unequal devices"));
}

TEST(MeshPlacesTest, WhereEachHasAllThereIsNothingToSay) {
  EXPECT_EQ(MeshWords({}, On({"a:0"})), "");
  EXPECT_EQ(MeshWords({.mesh_devices = 2}, On({"a:0", "a:1", "a:2"})), "");
}

TEST(MeshPlacesTest, AMeshWithoutAMemberIsNone) {
  EXPECT_THAT(OfWholeMeshes({0, 1, 2, 3, 5}, 2), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(OfWholeMeshes({0, 2, 5}, 2), IsEmpty());
}

// ---- Jobs of meshes, on nodes a and b of two devices each: workers 1 to 4

JobRecord MeshJob(std::uint32_t devices, std::uint32_t least) {
  return Job(1, {.workers_min = least,
                 .workers_max = 4,
                 .mesh_devices = devices,
                 .mesh = "1d",
                 .retries = 1});
}

class JobOfMeshesTest : public testing::Test {
 protected:
  // To its first round.
  void Run(const JobRecord& job) {
    rig_.Step(Join("a", 2));
    rig_.Step(Join("b", 2));
    rig_.Step(JobSubmitted{job});
    for (std::uint64_t worker = 1; worker <= 4; ++worker) rig_.Step(Said(worker, Ready()));
    for (std::uint64_t worker = 1; worker <= 4; ++worker) {
      rig_.Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e"}));
    }
    const RoundOf round{.round = 0, .batch_sizes = {32, 32, 32, 32}};
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      rig_.Step(Said(rank + 1, ReportOf(rank, round)));
    }
    ASSERT_EQ(record().state, JobState::kRunning);
  }
  Actions Kill(std::uint64_t worker) {
    return rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 9});
  }
  Actions Lose(std::uint64_t worker, std::uint64_t rounds) {
    return rig_.Step(Said(worker, GroupLostMessage{.generation = record().generation,
                                                   .rounds = rounds,
                                                   .reason = "reset by peer"}));
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
};

TEST_F(JobOfMeshesTest, ReplicasAreOnRecordWithTheirNodes) {
  Run(MeshJob(2, 2));

  EXPECT_EQ(record().groups.back().mesh, "1d; 2 replicas, each within one node, of equal devices");
}

TEST_F(JobOfMeshesTest, AReplicaThatLosesAMemberIsEndedAndTheOtherGoesOn) {
  Run(MeshJob(2, 2));
  Kill(4);
  Lose(1, 1);
  Lose(2, 1);

  const Actions actions = Lose(3, 1);

  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().regroups, 1u);
  ASSERT_THAT(record().members, SizeIs(2));
  EXPECT_EQ(record().members[0].worker, WorkerId{1});
  EXPECT_EQ(record().members[1].worker, WorkerId{2});
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{3}));
  EXPECT_EQ(record().groups.back().mesh, "1d; 1 replica, within one node, of equal devices");
}

TEST_F(JobOfMeshesTest, WhereNoReplicaIsLeftItIsTriedAgain) {
  Run(MeshJob(4, 4));
  Lose(1, 1);

  Kill(4);

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().regroups, 0u);
  ASSERT_TRUE(record().suspension.has_value());
  EXPECT_TRUE(record().suspension->lost);
}

TEST_F(JobOfMeshesTest, AReplicaWhosePartsAreOfTwoRoundsDoesNotGoOn) {
  Run(MeshJob(2, 2));
  Kill(4);
  Lose(1, 1);
  Lose(2, 2);  // it was told that all were done

  const Actions actions = Lose(3, 1);

  EXPECT_THAT(Sent<GroupMessage>(actions), IsEmpty());
  EXPECT_EQ(record().regroups, 0u);
  EXPECT_EQ(record().state, JobState::kSuspending);
}

TEST_F(JobOfMeshesTest, AReplicaAloneWhosePartsAreOfTwoRoundsEndsAtOnce) {
  Run(MeshJob(4, 4));
  Lose(1, 1);

  Lose(2, 2);

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().regroups, 0u);
  ASSERT_TRUE(record().suspension.has_value());
  EXPECT_TRUE(record().suspension->lost);
  EXPECT_EQ(record().suspension->reason,
            "worker 1 on node a lost its group: reset by peer; no replica goes on, as its members "
            "had applied unequal rounds");
}

// Nobody is gone or to blame: by deadlines alone it would have been tried with all of them.
TEST_F(JobOfMeshesTest, SoDoesOneThatLeftItsGroupOnPurpose) {
  Run(MeshJob(4, 4));
  const auto leave = [this](std::uint64_t worker, std::uint64_t rounds) {
    rig_.Step(Said(worker, GroupLostMessage{.generation = record().generation,
                                            .rounds = rounds,
                                            .reason = "asked to regroup",
                                            .planned = true}));
  };
  leave(1, 1);
  EXPECT_EQ(record().state, JobState::kRunning);

  leave(2, 2);

  EXPECT_EQ(record().state, JobState::kSuspending);
  ASSERT_TRUE(record().suspension.has_value());
  EXPECT_THAT(record().suspension->reason, HasSubstr("its members had applied unequal rounds"));
}

TEST_F(JobOfMeshesTest, AReplicaAloneThatMissesAMemberSaysSoAlone) {
  Run(MeshJob(4, 4));
  Lose(1, 1);

  Kill(4);

  EXPECT_EQ(record().state, JobState::kSuspending);
  ASSERT_TRUE(record().suspension.has_value());
  EXPECT_THAT(record().suspension->reason, HasSubstr("signal 9"));
  EXPECT_THAT(record().suspension->reason, Not(HasSubstr("unequal rounds")));
}

TEST_F(JobOfMeshesTest, AReplicaAloneOfOneRoundMeetsAgain) {
  Run(MeshJob(4, 4));
  for (std::uint64_t worker = 1; worker <= 4; ++worker) Lose(worker, 1);

  EXPECT_EQ(record().state, JobState::kRunning);
}

TEST(JobOfMeshesReadyTest, AWorkerThatKnowsNoMeshesEndsTheJobInALine) {
  Rig rig;
  rig.Step(Join("a", 2));
  rig.Step(Join("b", 2));
  rig.Step(JobSubmitted{MeshJob(2, 4)});
  ReadyMessage ready = Ready();
  rig.Step(Said(1, ready));
  EXPECT_EQ(rig.record().state, JobState::kStarting);
  ready.mesh_version = 0;

  const Actions actions = rig.Step(Said(3, ready));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().error_field, "model.options.mesh");
  EXPECT_THAT(rig.record().state_reason, HasSubstr("worker 3 on node b knows no models that are"));
  EXPECT_THAT(Sent<GroupMessage>(actions), IsEmpty());
}

TEST(JobOfMeshesReadyTest, WorkersOfUnlikeVersionsEndTheJobInALine) {
  Rig rig;
  rig.Step(Join("a", 2));
  rig.Step(Join("b", 2));
  rig.Step(JobSubmitted{MeshJob(2, 4)});
  ReadyMessage ready = Ready();
  for (const std::uint64_t worker : {1, 2, 3}) rig.Step(Said(worker, ready));
  ++ready.mesh_version;

  const Actions actions = rig.Step(Said(4, ready));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().error_field, "model.options.mesh");
  EXPECT_THAT(rig.record().state_reason,
              HasSubstr("worker 4 on node b has other rules of splitting a model, from another "
                        "version of Tactus, than worker 1 on node a"));
  EXPECT_THAT(Sent<GroupMessage>(actions), IsEmpty());
}

TEST(JobOfMeshesReadyTest, AJobOfWholeModelsDoesNotAskForIt) {
  Rig rig;
  rig.Step(Join("a", 2));
  rig.Step(JobSubmitted{Job(1, {.workers_min = 2, .workers_max = 2})});
  ReadyMessage ready = Ready();
  ready.mesh_version = 0;
  rig.Step(Said(1, ready));
  ++ready.mesh_version;

  EXPECT_THAT(Sent<GroupMessage>(rig.Step(Said(2, ready))), Not(IsEmpty()));
}

TEST(MeshScheduleTest, AJobStartsWithWholeReplicas) {
  Rig rig;
  rig.Step(Join("a", 2));
  rig.Step(Join("b", 1));

  const Actions actions = rig.Step(JobSubmitted{MeshJob(2, 2)});

  EXPECT_THAT(Only<StartWorker>(actions), SizeIs(2));
}

}  // namespace
}  // namespace tactus::job
