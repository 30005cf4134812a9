// The agent's goodbye in time: what it says, what it waits for, and that it does not wait for ever.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "agent/daemon/agent.h"
#include "base/check.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::HasSubstr;
using FromAgent = tactus::agent::v1::FromAgent;

class AgentLeavingTest : public testing::Test {
 protected:
  AgentLeavingTest() {
    AgentOptions options;
    options.coordinator = coordinator_->address();
    options.node = "node-1";
    options.devices = {{.name = "cpu:0", .model = "Some CPU"}};
    options.address = "127.0.0.1";
    options.state_folder = folder_.File("state");
    options.worker_binary = FakeWorker();
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, options, 77);
    TACTUS_CHECK(agent.ok());
    agent_ = *std::move(agent);
    control_.RunAndWait([this] { agent_->Start(); });
  }
  ~AgentLeavingTest() override {
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  void Leave(Duration within) {
    control_.RunAndWait([&] {
      agent_->Leave({.reason = "SIGTERM", .within = within}, Seconds(0),
                    [this] { left_.Set(true); });
    });
  }
  bool Left() { return left_.Await().has_value(); }

  // Kills the workers; `left_` is not told.
  bool Stop() {
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    return stopped.Await().has_value();
  }

  // Starts a worker that says its process id.
  pid_t StartWorker(std::uint64_t id, const std::string& behaviour) {
    coordinator_->StartWorker(id, behaviour);
    const FromAgent ready = coordinator_->AwaitMessage([id](const FromAgent& message) {
      return message.from_worker().worker_id() == id && message.from_worker().message().has_ready();
    });
    return static_cast<pid_t>(ready.from_worker().message().ready().parameters());
  }
  void AwaitLeaving() {
    coordinator_->AwaitMessage([](const FromAgent& message) { return message.has_leaving(); });
  }
  TemporaryFolder folder_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  std::unique_ptr<FakeCoordinator> coordinator_ =
      std::make_unique<FakeCoordinator>(FakeCoordinator::Manners{});
  std::unique_ptr<Agent> agent_;
  Once<bool> left_;
};

TEST_F(AgentLeavingTest, LeavingAsksTheWorkersToSuspendAndWaitsForTheirFiles) {
  const pid_t worker = StartWorker(5, "suspends");

  Leave(Seconds(60));

  EXPECT_TRUE(Left());
  EXPECT_TRUE(AwaitProcessEnd(worker));
  EXPECT_EQ(coordinator_->uploaded().count("suspends-1/checkpoint.safetensors"), 1u);
  const std::vector<FromAgent> received = coordinator_->received();
  const auto first = [&received](const auto& is) {
    return std::ranges::find_if(received, is) - received.begin();
  };
  const auto leaving = first([](const FromAgent& message) { return message.has_leaving(); });
  const auto finished = first(
      [](const FromAgent& message) { return message.from_worker().message().has_finished(); });
  const auto exited = first([](const FromAgent& message) { return message.has_worker_exited(); });
  EXPECT_LT(leaving, finished);
  EXPECT_LT(finished, exited);
  ASSERT_LT(exited, std::ssize(received));
  const tactus::v1::Finished& last =
      received[static_cast<std::size_t>(finished)].from_worker().message().finished();
  EXPECT_EQ(last.reason(), "node node-1 is leaving: SIGTERM");
  EXPECT_TRUE(last.suspended());
  EXPECT_EQ(received[static_cast<std::size_t>(leaving)].leaving().reason(), "SIGTERM");
  EXPECT_GT(received[static_cast<std::size_t>(leaving)].leaving().within().seconds(), 50);
}

TEST_F(AgentLeavingTest, WhoDoesNotEndInTimeIsEndedAsBefore) {
  const pid_t worker = StartWorker(5, "deaf");

  Leave(Seconds(0.2));

  EXPECT_TRUE(Left());
  EXPECT_TRUE(AwaitProcessEnd(worker));
  EXPECT_EQ(coordinator_->AwaitExit(5).signal(), SIGKILL);
}

TEST_F(AgentLeavingTest, StoppingCutsLeavingShort) {
  const pid_t worker = StartWorker(5, "deaf");
  Leave(Seconds(3600));
  AwaitLeaving();

  EXPECT_TRUE(Stop());

  EXPECT_TRUE(AwaitProcessEnd(worker));
}

TEST_F(AgentLeavingTest, AnAgentThatIsLeavingStartsNothingAndSaysSoAgain) {
  StartWorker(5, "deaf");
  Leave(Seconds(3600));
  AwaitLeaving();

  coordinator_->StartWorker(6, "echo");

  EXPECT_THAT(coordinator_->AwaitExit(6).log_tail(), HasSubstr("it is being stopped"));
  coordinator_->Drop(0);
  const FromAgent hello = coordinator_->AwaitHello(2);
  EXPECT_EQ(hello.hello().leaving().reason(), "SIGTERM");
  EXPECT_GT(hello.hello().leaving().within().seconds(), 3000);
  EXPECT_TRUE(Stop());
}

TEST_F(AgentLeavingTest, WhatAWorkerSaidWhileTheCoordinatorWasAwayIsWaitedFor) {
  StartWorker(5, "suspends");
  const int port = coordinator_->port();
  coordinator_.reset();
  Leave(Seconds(3600));

  coordinator_ = std::make_unique<FakeCoordinator>(FakeCoordinator::Manners{}, port);

  EXPECT_TRUE(Left());
  EXPECT_EQ(coordinator_->AwaitExit(5).exit_code(), 0);
  EXPECT_EQ(coordinator_->uploaded().count("suspends-1/checkpoint.safetensors"), 1u);
}

TEST_F(AgentLeavingTest, WithoutWorkersThereIsNothingToWaitFor) {
  coordinator_->AwaitHello(1);

  Leave(Seconds(3600));

  EXPECT_TRUE(Left());
}

}  // namespace
}  // namespace tactus::agent
