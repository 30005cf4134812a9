// Workers that share a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "agent/daemon/agent.h"
#include "protocol/arrays.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::HasSubstr;
using testing::Not;
using FromAgent = tactus::agent::v1::FromAgent;

class AgentArraysTest : public testing::Test {
 protected:
  AgentArraysTest() {
    options_.coordinator = coordinator_.address();
    options_.node = "node-1";
    options_.devices = {{.name = "cpu:0", .model = ""},
                        {.name = "cpu:1", .model = ""},
                        {.name = "cpu:2", .model = "", .emulated_speed = 0.5}};
    options_.address = "127.0.0.1";
    options_.state_folder = folder_.File("state");
    options_.worker_binary = FakeWorker();
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, options_, 77);
    EXPECT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    control_.RunAndWait([this] { agent_->Start(); });
  }
  ~AgentArraysTest() override {
    if (!stopped_) Stop(Duration(0));
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
  }

  bool Stop(Duration grace) {
    stopped_ = true;
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(grace, [&] { stopped.Set(true); }); });
    return stopped.Await().has_value();
  }

  // Returns the id of the process that it is in.
  pid_t Start(std::uint64_t id, const std::string& behaviour, const std::string& array,
              const std::string& device = "cpu:0") {
    coordinator_.StartInArray(id, behaviour, array, device);
    const FromAgent ready = coordinator_.AwaitMessage([id](const FromAgent& message) {
      return message.from_worker().worker_id() == id && message.from_worker().message().has_ready();
    });
    return static_cast<pid_t>(ready.from_worker().message().ready().parameters());
  }

  void StopIn(std::uint64_t id, int milliseconds) {
    tactus::agent::v1::ToAgent stop;
    stop.mutable_stop_worker()->set_worker_id(id);
    stop.mutable_stop_worker()->mutable_grace()->set_nanos(milliseconds * 1'000'000);
    coordinator_.Send(stop);
  }

  TemporaryFolder folder_;
  AgentOptions options_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  FakeCoordinator coordinator_{{}};
  std::unique_ptr<Agent> agent_;
  bool stopped_ = false;
};

TEST_F(AgentArraysTest, ThoseOfOneArrayOnOneDeviceShareAProcess) {
  const pid_t first = Start(1, "echo", "x");

  EXPECT_EQ(Start(2, "echo", "x"), first);
  EXPECT_NE(Start(3, "echo", "y"), first);
  EXPECT_NE(Start(4, "echo", "x", "cpu:1"), first);
  EXPECT_NE(Start(5, "echo", ""), first);
  EXPECT_NE(Start(6, "echo", "x", "cpu:2"), first) << "its speed is that of a process of one";
}

TEST_F(AgentArraysTest, MoreShareADeviceThanProcessesMay) {
  const pid_t process = Start(1, "echo", "x");
  for (std::uint64_t id = 2; id <= protocol::kArrayJobsMax; ++id)
    EXPECT_EQ(Start(id, "echo", "x"), process);
}

TEST_F(AgentArraysTest, OneEndsAndTheOthersGoOn) {
  const pid_t process = Start(1, "echo", "x");
  Start(2, "echo", "x");

  coordinator_.SendStop(1);

  EXPECT_EQ(coordinator_.AwaitExit(1).exit_code(), 0);
  EXPECT_EQ(Start(3, "echo", "x"), process);
  coordinator_.SendPlan(2, 5);
  EXPECT_EQ(coordinator_
                .AwaitMessage([](const FromAgent& message) {
                  return message.from_worker().worker_id() == 2 &&
                         message.from_worker().message().has_report();
                })
                .from_worker()
                .message()
                .report()
                .plan_version(),
            5u);
}

TEST_F(AgentArraysTest, OneThatFailsIsTheOnlyOneThatExits) {
  const pid_t process = Start(1, "echo", "x");
  coordinator_.StartInArray(2, "crash", "x");

  const auto exit = coordinator_.AwaitExit(2);

  EXPECT_EQ(exit.exit_code(), 3);
  EXPECT_THAT(exit.log_tail(), HasSubstr("boom: out of luck"));
  EXPECT_EQ(Start(3, "echo", "x"), process);
}

// As if its process had been: what it said last is not passed on.
TEST_F(AgentArraysTest, OneThatIsStoppedEndsAsBySigterm) {
  const pid_t process = Start(1, "echo", "x");
  Start(2, "echo", "x");

  coordinator_.StopWorker(1, 30);

  EXPECT_EQ(coordinator_.AwaitExit(1).signal(), SIGTERM);
  for (const FromAgent& message : coordinator_.received()) {
    EXPECT_FALSE(message.from_worker().message().has_finished());
  }
  EXPECT_EQ(Start(3, "echo", "x"), process);
}

// The others are lost with it, and told of; why, each is told.
TEST_F(AgentArraysTest, OneThatDoesNotEndTakesItsProcessWithIt) {
  Start(1, "deaf", "x");
  Start(2, "echo", "x");

  StopIn(1, 100);

  const auto culprit = coordinator_.AwaitExit(1);
  EXPECT_EQ(culprit.signal(), SIGKILL);
  EXPECT_THAT(culprit.log_tail(), Not(HasSubstr("its process was killed")));
  const auto other = coordinator_.AwaitExit(2);
  EXPECT_EQ(other.signal(), SIGKILL);
  EXPECT_THAT(other.log_tail(), HasSubstr("agent: its process was killed, as worker 1 of job "
                                          "deaf-1, which shared it, had not ended 0 s after"));
}

// By then the grace of the one that is asked later is over, too.
TEST_F(AgentArraysTest, OneThatLoadsIsLeftToFinishAndEndsAlone) {
  const pid_t process = Start(1, "echo", "x");
  Start(9, "deaf", "y");
  coordinator_.StartInArray(2, "loads", "x");
  StopIn(2, 100);
  StopIn(9, 200);
  EXPECT_EQ(coordinator_.AwaitExit(9).signal(), SIGKILL);

  EXPECT_EQ(Start(3, "echo", "x"), process);
  std::ofstream(folder_.File("state") + "/jobs/loads-1/result/loaded") << "it is";

  EXPECT_EQ(coordinator_.AwaitExit(2).signal(), SIGTERM);
  EXPECT_EQ(Start(4, "echo", "x"), process);
  for (const FromAgent& message : coordinator_.received()) {
    EXPECT_NE(message.from_worker().worker_id(), 2u) << "nothing that it said counted any more";
  }
}

// It had heard of it by then.
TEST_F(AgentArraysTest, OneThatHasLoadedHasItsGraceAndNoMore) {
  Start(1, "echo", "x");
  coordinator_.StartInArray(2, "loads-deaf", "x");
  StopIn(2, 100);
  std::filesystem::create_directories(folder_.File("state") + "/jobs/loads-deaf-1/result");
  std::ofstream(folder_.File("state") + "/jobs/loads-deaf-1/result/loaded") << "it is";

  EXPECT_EQ(coordinator_.AwaitExit(2).signal(), SIGKILL);
}

TEST_F(AgentArraysTest, AProcessThatDiesIsTheEndOfAllInItAndTheNextOneIsAnother) {
  const pid_t process = Start(1, "echo", "x");
  Start(2, "echo", "x");

  ::kill(process, SIGKILL);

  EXPECT_EQ(coordinator_.AwaitExit(1).signal(), SIGKILL);
  EXPECT_EQ(coordinator_.AwaitExit(2).signal(), SIGKILL);
  EXPECT_NE(Start(3, "echo", "x"), process);
}

TEST_F(AgentArraysTest, AnAgentThatStopsWaitsForAll) {
  Start(1, "echo", "x");
  Start(2, "echo", "x");

  EXPECT_TRUE(Stop(Seconds(20)));

  EXPECT_EQ(coordinator_.AwaitExit(1).signal(), SIGTERM);
  EXPECT_EQ(coordinator_.AwaitExit(2).signal(), SIGTERM);
}

}  // namespace
}  // namespace tactus::agent
