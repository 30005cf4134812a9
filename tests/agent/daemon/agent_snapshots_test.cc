// What the agent makes of the snapshots of jobs that train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/daemon/agent.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using FromAgent = tactus::agent::v1::FromAgent;
using testing::ElementsAre;

class AgentSnapshotsTest : public testing::Test {
 protected:
  ~AgentSnapshotsTest() override {
    if (agent_ == nullptr) return;
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    EXPECT_TRUE(stopped.Await().has_value());
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  // A worker that has taken those of 70, 71 and 72 s, as the agent knows.
  void Begin(const FakeCoordinator::Manners& manners, const std::string& behaviour = "snapshots") {
    coordinator_ = std::make_unique<FakeCoordinator>(manners);
    const AgentOptions options = {.coordinator = coordinator_->address(),
                                  .node = "node-1",
                                  .devices = {{.name = "cpu:0", .model = "Some CPU"}},
                                  .address = "127.0.0.1",
                                  .state_folder = folder_.File("state"),
                                  .worker_binary = FakeWorker(),
                                  .version = "1.2.3"};
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, options, 77);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    control_.RunAndWait([this] { agent_->Start(); });
    Take(5, behaviour, 70);
  }

  // Another one, from `seconds` on.
  void Take(std::uint64_t worker, const std::string& behaviour, std::uint64_t seconds) {
    coordinator_->StartWorker(worker, behaviour);
    coordinator_->SendPlan(worker, seconds);
    const FromAgent report = coordinator_->AwaitMessage([worker](const FromAgent& message) {
      return message.from_worker().worker_id() == worker &&
             message.from_worker().message().has_report();
    });
    ASSERT_EQ(report.from_worker().worker_id(), worker);
  }

  void Suspend(std::uint64_t worker) {
    tactus::agent::v1::ToAgent message;
    message.mutable_to_worker()->set_worker_id(worker);
    message.mutable_to_worker()->mutable_message()->mutable_stop()->set_suspend(true);
    coordinator_->Send(message);
  }

  static std::string PathOf(int seconds, const std::string& behaviour = "snapshots") {
    return behaviour + "-1/snapshots/" + std::to_string(seconds) + ".safetensors";
  }

  TemporaryFolder folder_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentSnapshotsTest, AllAreBroughtUpInTheirOrderWhileTheWorkerGoesOn) {
  Begin({.refused_uploads = 1});

  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(72)));

  EXPECT_THAT(coordinator_->upload_order(), ElementsAre(PathOf(70), PathOf(71), PathOf(72)));
  EXPECT_EQ(coordinator_->uploaded().at(PathOf(71)), "after 71");
  EXPECT_EQ(coordinator_->upload_header().worker_id(), 5u);
  for (const FromAgent& message : coordinator_->received()) {
    EXPECT_FALSE(message.has_worker_exited());
    EXPECT_FALSE(message.from_worker().message().has_snapshotted()) << "that is the agent's alone";
  }
  EXPECT_TRUE(std::filesystem::exists(
      folder_.File("state/jobs/snapshots-1/result/snapshots/71.safetensors")))
      << "a result may name it";
}

TEST_F(AgentSnapshotsTest, OneThatIsNotTakenIsLeftOutAndTheNextOnesCome) {
  Begin({.refused_uploads = 1, .upload_refusal = grpc::StatusCode::INVALID_ARGUMENT});

  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(72)));

  EXPECT_THAT(coordinator_->upload_order(), ElementsAre(PathOf(71), PathOf(72)));
  for (const FromAgent& message : coordinator_->received()) {
    EXPECT_FALSE(message.from_worker().message().has_failed());
    EXPECT_FALSE(message.has_worker_exited());
  }
}

TEST_F(AgentSnapshotsTest, TheyAreBroughtUpAfterTheEndOfTheirWorker) {
  Begin({.refused_uploads = 1'000'000});
  coordinator_->SendStop(5);
  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 3);
  EXPECT_TRUE(coordinator_->uploaded().empty());

  coordinator_->Become({});

  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(72)));
  EXPECT_THAT(coordinator_->upload_order(), ElementsAre(PathOf(70), PathOf(71), PathOf(72)));
}

TEST_F(AgentSnapshotsTest, OfAWorkerThatFinishedTheResultIsAllThatIsBroughtUp) {
  Begin({.held_upload = PathOf(70, "finishes")}, "finishes");
  ASSERT_TRUE(coordinator_->AwaitHeldUpload());

  coordinator_->SendStop(5);

  ASSERT_TRUE(coordinator_->AwaitUpload("finishes-1/model.pt"));
  coordinator_->Become({});
  Take(6, "snapshots", 80);
  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(82))) << "behind whatever still waits";
  EXPECT_THAT(coordinator_->upload_order(),
              ElementsAre("finishes-1/model.pt", PathOf(80), PathOf(81), PathOf(82)));
}

TEST_F(AgentSnapshotsTest, ASuspendedWorkersCheckpointOvertakesThemAndTheyFollow) {
  Begin({.held_upload = PathOf(70, "finishes")}, "finishes");
  ASSERT_TRUE(coordinator_->AwaitHeldUpload());

  Suspend(5);

  ASSERT_TRUE(coordinator_->AwaitUpload("finishes-1/checkpoint.safetensors"));
  coordinator_->Become({});
  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(72, "finishes")));
  EXPECT_THAT(coordinator_->upload_order(),
              ElementsAre("finishes-1/checkpoint.safetensors", PathOf(70, "finishes"),
                          PathOf(71, "finishes"), PathOf(72, "finishes")));
}

TEST_F(AgentSnapshotsTest, ThoseThatAResultNamesAreBroughtUpBeforeItsOtherFiles) {
  Begin({}, "names");
  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(72, "names")));

  coordinator_->SendStop(5);

  ASSERT_TRUE(coordinator_->AwaitUpload("names-1/model.pt"));
  const std::vector<std::string> order = coordinator_->upload_order();
  ASSERT_EQ(order.size(), 7u);
  EXPECT_THAT(std::vector(order.begin() + 3, order.end()),
              ElementsAre(PathOf(70, "names"), PathOf(71, "names"), PathOf(72, "names"),
                          "names-1/model.pt"));
}

struct Refusal {
  grpc::StatusCode code{};
  std::string reason{};
};
class AgentSnapshotsRefusedForGoodTest : public AgentSnapshotsTest,
                                         public testing::WithParamInterface<Refusal> {};
INSTANTIATE_TEST_SUITE_P(All, AgentSnapshotsRefusedForGoodTest,
                         testing::Values(Refusal{.code = grpc::StatusCode::FAILED_PRECONDITION},
                                         Refusal{.code = grpc::StatusCode::NOT_FOUND,
                                                 .reason = "JOB_NOT_FOUND"}));

TEST_P(AgentSnapshotsRefusedForGoodTest, NoFurtherOneOfThatWorkerIsTried) {
  Begin({.held_upload = PathOf(70, "finishes")}, "finishes");
  ASSERT_TRUE(coordinator_->AwaitHeldUpload());

  coordinator_->Become({.refused_uploads = 1,
                        .upload_refusal = GetParam().code,
                        .refusal_reason = GetParam().reason});

  Take(6, "snapshots", 80);
  ASSERT_TRUE(coordinator_->AwaitUpload(PathOf(82)));
  EXPECT_THAT(coordinator_->upload_order(), ElementsAre(PathOf(80), PathOf(81), PathOf(82)));
}

}  // namespace
}  // namespace tactus::agent
