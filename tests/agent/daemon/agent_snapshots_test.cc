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
using testing::Key;
using testing::UnorderedElementsAre;

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

  // A worker that has taken those of 70, 71 and 72 s.
  void Begin(const FakeCoordinator::Manners& manners) {
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
    coordinator_->StartWorker(5, "snapshots");
    coordinator_->SendPlan(5, 70);
  }

  static std::string PathOf(int seconds) {
    return "snapshots-1/snapshots/" + std::to_string(seconds) + ".safetensors";
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

  const auto uploaded = coordinator_->uploaded();
  EXPECT_THAT(uploaded, UnorderedElementsAre(Key(PathOf(70)), Key(PathOf(71)), Key(PathOf(72))));
  EXPECT_EQ(uploaded.at(PathOf(71)), "after 71");
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

  EXPECT_THAT(coordinator_->uploaded(), UnorderedElementsAre(Key(PathOf(71)), Key(PathOf(72))));
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
  EXPECT_THAT(coordinator_->uploaded(),
              UnorderedElementsAre(Key(PathOf(70)), Key(PathOf(71)), Key(PathOf(72))));
}

}  // namespace
}  // namespace tactus::agent
