// What the agent makes of the checkpoints of jobs that train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/daemon/agent.h"
#include "runtime/sha256.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using FromAgent = tactus::agent::v1::FromAgent;

class AgentCheckpointsTest : public testing::Test {
 protected:
  ~AgentCheckpointsTest() override {
    if (agent_ == nullptr) return;
    Stop();
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  void Open(const FakeCoordinator::Manners& manners) {
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
  }

  void Stop() {
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    EXPECT_TRUE(stopped.Await().has_value());
  }

  TemporaryFolder folder_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<Agent> agent_;
};

std::vector<tactus::v1::Checkpointed> CheckpointsOf(const std::vector<FromAgent>& received) {
  std::vector<tactus::v1::Checkpointed> found;
  for (const FromAgent& message : received) {
    const tactus::v1::FromWorker& said = message.from_worker().message();
    if (said.has_checkpointed()) found.push_back(said.checkpointed());
  }
  return found;
}

TEST_F(AgentCheckpointsTest,
       OfACheckpointItIsToldWhenItsFileIsThereAndOfThoseThatWaitTheNewestIsSent) {
  Open({.refused_uploads = 1});
  coordinator_->StartWorker(5, "training");

  coordinator_->SendPlan(5, 70);
  ASSERT_TRUE(coordinator_->Await(
      [](const auto& received) { return CheckpointsOf(received).size() == 2; }));

  const auto told = CheckpointsOf(coordinator_->received());
  EXPECT_EQ(told[0].rounds(), 70u);
  EXPECT_EQ(told[1].rounds(), 72u);
  runtime::Sha256 hash;
  hash.Update("after 72");
  EXPECT_EQ(told[1].sha256(), hash.Finish());
  EXPECT_EQ(told[1].size_bytes(), 8u);
  const auto uploaded = coordinator_->uploaded();
  EXPECT_EQ(uploaded.at("training-1/checkpoints/72.safetensors"), "after 72");
  EXPECT_FALSE(uploaded.contains("training-1/checkpoints/71.safetensors"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.File("state/jobs/training-1/result/checkpoints")));
}

TEST_F(AgentCheckpointsTest, ACheckpointThatIsNotTakenIsLeftOutAndItsWorkerGoesOn) {
  Open({.refused_uploads = 1, .upload_refusal = grpc::StatusCode::INVALID_ARGUMENT});
  coordinator_->StartWorker(5, "training");

  coordinator_->SendPlan(5, 70);
  ASSERT_TRUE(coordinator_->Await(
      [](const auto& received) { return CheckpointsOf(received).size() == 1; }));
  coordinator_->SendStop(5);

  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 0);
  // The newest that was there when the first one was refused.
  EXPECT_GT(CheckpointsOf(coordinator_->received())[0].rounds(), 70u);
}

TEST_F(AgentCheckpointsTest, ThoseOfAWorkerThatHasFinishedDelayNothing) {
  Open({.refused_uploads = 1'000'000});
  coordinator_->StartWorker(5, "training");
  coordinator_->SendPlan(5, 70);
  coordinator_->SendStop(5);
  coordinator_->AwaitExit(5);
  coordinator_->Become({});

  coordinator_->StartWorker(6, "result");

  ASSERT_TRUE(coordinator_->AwaitUpload("result-1/model.pt"));
  EXPECT_EQ(coordinator_->uploaded().size(), 1u);
  EXPECT_TRUE(CheckpointsOf(coordinator_->received()).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.File("state/jobs/training-1/result/checkpoints")));
}

TEST_F(AgentCheckpointsTest, WhatAFormerGroupLeftOfCheckpointsGoesBeforeTheNextOne) {
  const std::string left = folder_.File("state/jobs/echo-1/result/checkpoints");
  std::filesystem::create_directories(left);
  std::ofstream(left + "/70.safetensors") << "never sent";
  Open({});

  coordinator_->StartWorker(5, "echo");
  coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_ready(); });

  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(AgentCheckpointsTest, ACheckpointThatIsNotThereIsSaidInTheNameOfItsWorker) {
  Open({});
  tactus::v1::Start start;
  start.set_checkpoint("sha256:" + std::string(64, 'a'));

  coordinator_->StartWith(5, "echo", start);

  const FromAgent said = coordinator_->AwaitMessage(
      [](const FromAgent& message) { return message.from_worker().message().has_failed(); });
  EXPECT_EQ(said.from_worker().worker_id(), 5u);
  EXPECT_EQ(said.from_worker().message().failed().field(), "checkpoint");
  EXPECT_TRUE(said.from_worker().message().failed().transient());
  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 127);
}

}  // namespace
}  // namespace tactus::agent
