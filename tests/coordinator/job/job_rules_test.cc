// The rules of a job's life, one by one, through the cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// ---- Starting

TEST(JobStartTest, RanksAreByNodeAndDevice) {
  Rig rig;

  rig.ToFormed();

  std::vector<std::string> places;
  for (const MemberRecord& member : rig.record().members) {
    places.push_back(member.node + "/" + member.device);
  }
  EXPECT_THAT(places, ElementsAre("a/cpu:0", "a/cpu:1", "b/cpu:0"));
}

TEST(JobStartTest, NobodyIsGroupedBeforeAllAreReady) {
  Rig rig;
  rig.ToStarting();

  EXPECT_THAT(Sent<GroupMessage>(rig.Step(Said(3, Ready()))), IsEmpty());
  EXPECT_THAT(Sent<GroupMessage>(rig.Step(Said(1, Ready()))), IsEmpty());
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(rig.Step(Said(2, Ready())));

  ASSERT_THAT(groups, SizeIs(3));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(groups[rank].rank, rank);
    EXPECT_EQ(groups[rank].size, 3u);
    EXPECT_EQ(groups[rank].generation, 1u);
    EXPECT_EQ(groups[rank].plan.version, 1u);
  }
}

TEST(JobStartTest, AGroupOfUnlikeDevicesIsToldItsTransportWhichIsOnRecord) {
  Rig rig(Job(1, {.workers_min = 2, .workers_max = 2, .device = DeviceKind::kAny}));
  rig.Step(NodeJoined{.node = "a", .devices = {{.name = "cpu:0"}}});
  rig.Step(NodeJoined{.node = "b",
                      .devices = {{.name = "cuda:0", .kind = DeviceKind::kCuda, .uuid = "GPU-1"}}});
  rig.Step(JobSubmitted{
      .record = Job(1, {.workers_min = 2, .workers_max = 2, .device = DeviceKind::kAny})});
  ReadyMessage on_gpu = Ready();
  on_gpu.nccl_version = "2.28.9";

  rig.Step(Said(1, Ready()));
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(rig.Step(Said(2, on_gpu)));

  ASSERT_THAT(groups, SizeIs(2));
  for (const GroupMessage& group : groups) EXPECT_EQ(group.transport, TransportKind::kStaged);
  ASSERT_THAT(rig.record().groups, SizeIs(1));
  const TransportRecord& transport = rig.record().groups[0].transport;
  EXPECT_EQ(transport.kind, TransportKind::kStaged);
  EXPECT_THAT(transport.reason, HasSubstr("worker 1 on node a is on a processor"));
}

ReadyMessage Knowing(std::vector<std::string> encodings) {
  ReadyMessage ready = Ready();
  ready.encodings = std::move(encodings);
  return ready;
}

// Of three, the second one of which knows these.
std::vector<GroupMessage> GroupsOf(Rig& rig, std::vector<std::string> encodings) {
  rig.ToStarting();
  rig.Step(Said(1, Knowing({"dense", "dq"})));
  rig.Step(Said(2, Knowing(std::move(encodings))));
  return Sent<GroupMessage>(rig.Step(Said(3, Knowing({"dense", "dq", "float16"}))));
}

JobRecord JobOfDq() {
  JobSettings settings{.workers_min = 1, .workers_max = 3};
  settings.adapt.encoding_policy = "dq";
  return Job(1, settings);
}

TEST(JobStartTest, AGroupInWhichAllKnowTheEncodingHasItAndSaysSoOnRecord) {
  Rig rig(JobOfDq());

  for (const GroupMessage& group : GroupsOf(rig, {"dq"})) {
    EXPECT_EQ(group.plan.encoding, policies::Encoding::kDq);
  }

  EXPECT_THAT(rig.record().groups.at(0).encodings, ElementsAre(policies::Encoding::kDq));
}

TEST(JobStartTest, AGroupWithAWorkerOfAnOlderVersionIsDense) {
  Rig rig(JobOfDq());

  for (const GroupMessage& group : GroupsOf(rig, {})) {
    EXPECT_EQ(group.plan.encoding, policies::Encoding::kDense);
  }

  EXPECT_THAT(rig.record().groups.at(0).encodings, IsEmpty());
}

// What it is that they know is not the core's to know.
TEST(JobStartTest, MembersAreToldWhetherTheyEncrypt) {
  for (const bool encrypted : {false, true}) {
    Rig rig(Job(1, {.workers_min = 1, .workers_max = 3, .encrypted = encrypted}));
    const std::vector<GroupMessage> groups = GroupsOf(rig, {});
    ASSERT_THAT(groups, SizeIs(3));
    for (const GroupMessage& group : groups) {
      EXPECT_EQ(group.encrypted, encrypted);
      EXPECT_EQ(group.secret, "");
    }
  }
}

TEST(JobStartTest, AWorkerHasTheNameOfItsJob) {
  Rig rig;
  rig.ToStarting();
  EXPECT_EQ(rig.cluster().JobNameOf(WorkerId{3}), rig.record().name);
  EXPECT_EQ(rig.cluster().JobNameOf(WorkerId{4}), "");
}

TEST(JobStartTest, PeersComeInRankOrderWhenAllEndpointsAreIn) {
  Rig rig;
  rig.ToStarting();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) rig.Step(Said(worker, Ready()));

  rig.Step(Said(3, EndpointMessage{.generation = 1, .endpoint = "z"}));
  rig.Step(Said(1, EndpointMessage{.generation = 1, .endpoint = "x"}));
  const Actions actions = rig.Step(Said(2, EndpointMessage{.generation = 1, .endpoint = "y"}));

  const std::vector<PeersMessage> peers = Sent<PeersMessage>(actions);
  ASSERT_THAT(peers, SizeIs(3));
  EXPECT_THAT(peers[0].endpoints, ElementsAre("x", "y", "z"));
}

TEST(JobStartTest, AMemberWithOtherDataFailsTheJobByName) {
  Rig rig;
  rig.ToStarting();
  ReadyMessage odd = Ready();
  odd.train_samples = 999;

  rig.Step(Said(1, Ready()));
  rig.Step(Said(2, odd));
  const Actions actions = rig.Step(Said(3, Ready()));

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason,
            "worker 2 on node a has 999 training samples, worker 1 on node a has 1000");
  EXPECT_EQ(rig.record().error_field, "data");
  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST(JobStartTest, TheFirstReportMakesItRun) {
  Rig rig;
  rig.ToFormed();

  rig.Step(Said(2, ReportOf(1, {.batch_sizes = {32, 32, 32}})));

  EXPECT_EQ(rig.record().state, JobState::kRunning);
  // The round took 0.65 s before its report.
  EXPECT_EQ(rig.record().start_time, kWallOffset + (At(rig.seconds()) - At(0.65)).count());
}

TEST(JobStartTest, AReportOfAnotherGenerationDoesNothing) {
  Rig rig;
  rig.ToFormed();

  rig.Step(Said(2, ReportOf(1, {.batch_sizes = {32, 32, 32}}, 2)));

  EXPECT_EQ(rig.record().state, JobState::kStarting);
}

TEST(JobStartTest, WhoIsNotReadyInTimeIsNamed) {
  Rig rig(JobOnce(1));
  rig.ToStarting();
  rig.Step(Said(1, Ready()));

  rig.StepAt(602, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kFailed);
  EXPECT_EQ(rig.record().state_reason,
            "not ready within 10 minutes: worker 2 on node a, worker 3 on node b still loading "
            "model and data");
}

TEST(JobStartTest, WhoGivesNoAddressInTimeIsNamed) {
  Rig rig;
  rig.ToStarting();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) rig.Step(Said(worker, Ready()));
  rig.Step(Said(1, EndpointMessage{.generation = 1}));
  rig.Step(Said(3, EndpointMessage{.generation = 1}));

  rig.StepAt(602, Ticked{});

  EXPECT_THAT(rig.record().state_reason, HasSubstr("worker 2 on node a gave no address"));
}

TEST(JobStartTest, AGroupWithoutARoundInTimeFails) {
  Rig rig;
  rig.ToFormed();

  rig.StepAt(602, Ticked{});

  EXPECT_THAT(rig.record().state_reason, HasSubstr("the group of 3 workers finished no round"));
}

// ---- Running

TEST(JobRoundsTest, PlansFollowTheSpeedsOneAtATime) {
  Rig rig;
  rig.ToRunning();
  std::vector<policies::Plan> plans;
  for (int i = 0; i < 20 && plans.empty(); ++i) plans = PlansSent(rig.Round());

  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_EQ(plans[0].version, 2u);
  EXPECT_EQ(plans[0], plans[2]);
  EXPECT_LT(plans[0].batch_sizes[2], plans[0].batch_sizes[0]);
  EXPECT_EQ(rig.record().newest_plan, plans[0]);  // durable before it was sent
  for (int i = 0; i < 20; ++i) EXPECT_THAT(PlansSent(rig.Round(1)), IsEmpty());
}

TEST(JobRoundsTest, ARoundIsWrittenOnceAllHaveReportedIt) {
  Rig rig;
  rig.ToRunning();

  const std::vector<PersistRound> rounds = Only<PersistRound>(rig.Round());

  ASSERT_THAT(rounds, SizeIs(1));
  EXPECT_EQ(rounds[0].round.job, JobId{1});
  EXPECT_EQ(rounds[0].round.round, 1u);
  EXPECT_EQ(rounds[0].round.samples, 96u);
}

TEST(JobRoundsTest, ProgressIsPublishedAtMostOnceASecondAndPersistedEveryFive) {
  Rig rig(Job(1, {.workers_min = 1, .workers_max = 3, .adapt = {.batch_policy = "fixed"}}));
  rig.ToRunning();
  const double start = rig.seconds();
  int published = 0;
  int persisted = 0;

  while (rig.seconds() < start + 20) {
    const Actions actions = rig.Round();
    published += static_cast<int>(Only<PublishProgress>(actions).size());
    persisted += static_cast<int>(Only<PersistJob>(actions).size());
    EXPECT_THAT(Only<PublishJob>(actions), IsEmpty());
  }

  // A round takes 0.3 s here, so a second is four of them: 1.2 s.
  EXPECT_GE(published, 16);
  EXPECT_LE(published, 20);
  EXPECT_GE(persisted, 3);
  EXPECT_LE(persisted, 4);
  EXPECT_EQ(rig.record().progress.workers.size(), 3u);
  EXPECT_GT(rig.record().progress.rounds, 30u);
}

// ---- Ending

TEST(JobEndTest, SuccessNeedsAllFilesOfRankZero) {
  Rig rig;
  rig.ToRunning();

  rig.FinishAll();
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
  EXPECT_EQ(rig.record().state_reason, "3 rounds");
  ASSERT_TRUE(rig.record().result.has_value());
  EXPECT_THAT(rig.record().result->artifacts, SizeIs(2));
  EXPECT_NEAR(rig.record().result->utilisation, 288.0 / 2 / 250, 1e-9);
  EXPECT_GT(rig.record().end_time, 0);
}

TEST(JobEndTest, DifferentParametersAreALoss) {
  Rig rig;
  rig.ToRunning();
  FinishedMessage odd = Finished(1);
  odd.parameters_hash = 1;

  rig.Step(Said(1, Finished(0)));
  rig.Step(Said(2, odd));
  rig.Step(Said(3, Finished(2)));

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  EXPECT_THAT(rig.record().state_reason, StartsWith("members ended with different parameters"));
}

// As of a coordinator whose disk is full: its agent tries for as long as that takes.
TEST(JobEndTest, AFileThatIsOnItsWayIsWaitedFor) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  for (int attempt = 0; attempt < 5; ++attempt) {
    rig.StepAt(rig.seconds() + 590, ArtifactComing{.job = JobId{1}, .worker = WorkerId{1}});
  }
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.StepAt(rig.seconds() + 590, ArtifactComing{.job = JobId{1}, .worker = WorkerId{77}});
  rig.StepAt(rig.seconds() + 20, Ticked{});

  EXPECT_EQ(rig.record().state_reason,
            "the result's file model.pt did not arrive within 10 minutes")
      << "a stranger's file is none of it";
}

TEST(JobEndTest, AFileThatDoesNotArriveFailsTheJob) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  rig.StepAt(rig.seconds() + 601, Ticked{});

  EXPECT_EQ(rig.record().state_reason,
            "the result's file model.pt did not arrive within 10 minutes");
}

TEST(JobEndTest, TheLossOfRankZerosNodeBeforeItsFilesCostsTheAttempt) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  rig.Step(NodeLost{.node = "a", .reason = "no heartbeat for 5 s"});

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
  EXPECT_EQ(rig.record().state_reason, "node a was lost: no heartbeat for 5 s");
}

TEST(JobEndTest, AnAgentThatRestartsGoesOnWithItsFiles) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();
  rig.Step(ArtifactStored{JobId{1}, {.path = "model.pt", .size_bytes = 1}, WorkerId{1}});

  rig.Step(NodeLost{
      .node = "a", .reason = "the agent was started again", .ended_workers = {WorkerId{1}}});
  NodeJoined again = Join("a", 2);
  again.ended_workers = {WorkerId{1}};
  rig.Step(again);
  rig.Step(Said(1, Finished(0)));
  rig.Step(WorkerExited{.worker = WorkerId{1}});
  rig.StepAt(rig.seconds() + 300, Ticked{});
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.Step(ArtifactStored{JobId{1}, {.path = "model.safetensors", .size_bytes = 1}, WorkerId{1}});

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
  EXPECT_THAT(rig.record().attempts, SizeIs(1));
}

TEST(JobEndTest, AnAgentThatRestartsSaysWhatItsWorkersHadSaidLast) {
  Rig rig;
  rig.ToRunning();
  rig.Step(Said(3, Finished(2)));

  rig.Step(NodeLost{.node = "a",
                    .reason = "the agent was started again",
                    .ended_workers = {WorkerId{1}, WorkerId{2}}});
  NodeJoined again = Join("a", 2);
  again.ended_workers = {WorkerId{1}, WorkerId{2}};
  rig.Step(again);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    rig.Step(Said(rank + 1, Finished(rank)));
    rig.Step(WorkerExited{.worker = WorkerId{rank + 1}});
  }
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
  EXPECT_THAT(rig.record().attempts, SizeIs(1));
}

TEST(JobEndTest, AnAgentThatRestartsWithoutItsFilesCostsTheAttempt) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  rig.Step(Join("a", 2));

  EXPECT_EQ(rig.record().state, JobState::kSuspending);
}

TEST(JobEndTest, AFileOfAFormerGroupIsNoPartOfTheResult) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  for (const char* path : {"model.pt", "model.safetensors"}) {
    rig.Step(ArtifactStored{JobId{1}, {.path = path, .size_bytes = 1}, WorkerId{77}});
  }
  EXPECT_EQ(rig.record().state, JobState::kStopping);
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobEndTest, TheLossOfAnotherNodeAfterItFinishedDoesNot) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();

  rig.Step(NodeLost{.node = "b", .reason = "no heartbeat for 5 s"});
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobEndTest, WorkersThatDoNotLeaveAreEnded) {
  Rig rig;
  rig.ToRunning();
  rig.FinishAll();
  rig.StoreAll();
  rig.Step(WorkerExited{.worker = WorkerId{2}});

  const Actions actions = rig.StepAt(rig.seconds() + 30, Ticked{});

  EXPECT_THAT(Stopped(actions), ElementsAre(WorkerId{1}, WorkerId{3}));
  EXPECT_EQ(rig.record().state, JobState::kSucceeded);
}

TEST(JobEndTest, LastWordsWithoutAGroupDoNothing) {
  Rig rig;
  rig.ToStarting();

  rig.Step(Said(1, Finished(0)));

  EXPECT_EQ(rig.record().state, JobState::kStarting);
}

// ---- Cancelling

TEST(JobCancelTest, WorkersAreAskedOnceAndTheResultIsKept) {
  Rig rig;
  rig.ToRunning();

  const Actions actions = rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});
  EXPECT_THAT(Sent<StopMessage>(actions), SizeIs(3));
  EXPECT_THAT(rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"}), IsEmpty());
  rig.FinishAll();
  rig.StoreAll();

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
  EXPECT_EQ(rig.record().state_reason, "enough");
  EXPECT_TRUE(rig.record().result.has_value());
}

TEST(JobCancelTest, ADiscardLeavesNoResult) {
  Rig rig;
  rig.ToRunning();

  const Actions actions =
      rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .discard = true});
  EXPECT_TRUE(Sent<StopMessage>(actions).front().discard);
  rig.FinishAll();

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
  EXPECT_FALSE(rig.record().result.has_value());
}

TEST(JobCancelTest, WorkersThatDoNotFinishInTimeAreEnded) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  const Actions actions = rig.StepAt(rig.seconds() + 300, Ticked{});

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
  EXPECT_EQ(rig.record().state_reason,
            "enough; no result: its workers did not finish within 5 minutes");
  EXPECT_THAT(Stopped(actions), SizeIs(3));
}

TEST(JobCancelTest, ADeathAfterACancelIsNoFailure) {
  Rig rig;
  rig.ToRunning();
  rig.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 11});
  }

  EXPECT_EQ(rig.record().state, JobState::kCancelled);
  EXPECT_EQ(rig.record().state_reason,
            "enough; no result: worker 1 on node a was ended by signal 11 (SIGSEGV)");
}

}  // namespace
}  // namespace tactus::job
