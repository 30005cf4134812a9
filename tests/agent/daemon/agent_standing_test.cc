// What the agent says when it is asked where a worker stands.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "agent/daemon/agent.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using FromAgent = tactus::agent::v1::FromAgent;

class AgentStandingTest : public testing::Test {
 protected:
  AgentStandingTest() {
    const AgentOptions options = {.coordinator = coordinator_.address(),
                                  .node = "node-1",
                                  .devices = {{.name = "cpu:0", .model = "Some CPU"}},
                                  .address = "127.0.0.1",
                                  .state_folder = folder_.File("state"),
                                  .worker_binary = FakeWorker(),
                                  .version = "1.2.3"};
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, options, 77);
    EXPECT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    control_.RunAndWait([this] { agent_->Start(); });
  }
  ~AgentStandingTest() override {
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    EXPECT_TRUE(stopped.Await().has_value());
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  // Starts a worker that says its process id.
  pid_t StartWorker(std::uint64_t id, const std::string& behaviour) {
    coordinator_.StartWorker(id, behaviour);
    const FromAgent ready = coordinator_.AwaitMessage(
        [](const FromAgent& message) { return message.from_worker().message().has_ready(); });
    return static_cast<pid_t>(ready.from_worker().message().ready().parameters());
  }

  TemporaryFolder folder_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  FakeCoordinator coordinator_{{}};
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentStandingTest, AskedWhereAWorkerStandsItSaysWhatItSaidLastAndWhatIsSeenOfTheProcess) {
  const pid_t worker = StartWorker(5, "echo");

  const tactus::v1::Standing standing = coordinator_.LookAt(5);
  EXPECT_EQ(standing.generation(), 3u);
  EXPECT_EQ(standing.batches(), 7u);
  EXPECT_TRUE(standing.waits());
  EXPECT_THAT(standing.awaits(), testing::ElementsAre(1));
  EXPECT_FALSE(standing.stopped());
  EXPECT_GT(standing.silent_seconds(), 0);

  ::kill(worker, SIGSTOP);
  while (!coordinator_.LookAt(5).stopped()) std::this_thread::yield();
  ::kill(worker, SIGCONT);
  while (coordinator_.LookAt(5).stopped()) std::this_thread::yield();
}

// Nobody but who asks is told.
TEST_F(AgentStandingTest, WhereAWorkerStandsIsNotRelayed) {
  StartWorker(5, "echo");

  for (const FromAgent& message : coordinator_.received()) {
    EXPECT_FALSE(message.from_worker().message().has_standing());
  }
}

// A program of somebody else need not say where it stands.
TEST_F(AgentStandingTest, AWorkerThatNeverSaidWhereItStandsIsNotSilent) {
  StartWorker(5, "deaf");

  EXPECT_EQ(coordinator_.LookAt(5).silent_seconds(), 0);
}

}  // namespace
}  // namespace tactus::agent
