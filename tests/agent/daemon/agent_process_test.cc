// The program tactus-agent: exit codes, signals, and that nothing outlives it.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/http/http_client.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using FromAgent = tactus::agent::v1::FromAgent;

class AgentProcessTest : public testing::Test {
 protected:
  ~AgentProcessTest() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // Runs tactus-agent with `arguments`; what it says goes to the file "output".
  void Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), AgentProgram());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, folder_.File("output").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    ASSERT_EQ(posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void RunWithCoordinator(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "--coordinator", coordinator_.address(), "--node",          "node-1",
        "--state-dir",   folder_.File("state"),  "--worker-binary", FakeWorker()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Run(std::move(arguments));
  }

  // The wait status of the agent; -1 when it does not end.
  int WaitStatus() {
    int status = -1;
    if (!AwaitProcessEnd(pid_)) return -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  int ExitCode() {
    const int status = WaitStatus();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Output() const { return ReadFile(folder_.File("output")); }

  pid_t StartWorker(const std::string& behaviour) {
    coordinator_.StartWorker(5, behaviour);
    const FromAgent ready = coordinator_.AwaitMessage(
        [](const FromAgent& message) { return message.from_worker().message().has_ready(); });
    return static_cast<pid_t>(ready.from_worker().message().ready().parameters());
  }

  TemporaryFolder folder_;
  FakeCoordinator coordinator_{{}};
  pid_t pid_ = -1;
};

TEST_F(AgentProcessTest, WrongCommandLinesExitWith64AndWrongValuesWith78) {
  struct Case {
    std::vector<std::string> arguments;
    int code = 0;
    std::string says;
  };
  const Case cases[] = {
      {{}, 64, "--coordinator"},
      {{"--coordinator", "127.0.0.1:1", "--colour", "red"}, 64, "--colour"},
      {{"--coordinator", "nowhere"}, 78, "coordinator: 'nowhere'"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--devices", "gpu:0"},
       78,
       "devices: 'gpu:0'"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--devices", "cuda:0",
        "--nvml-library", "/nowhere/nvml.so"},
       78,
       "devices: 'cuda:0': /nowhere/nvml.so cannot be opened"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--devices", "gpus",
        "--nvml-library", TACTUS_NVML_DOUBLE},
       78,
       "devices: 'gpus': this host has no GPU"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/nowhere"},
       78,
       "worker-binary: '/nowhere'"},
      {{"--coordinator", "127.0.0.1:1", "--log-level", "loud"}, 78, "loud"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--metrics-listen", "x"},
       78,
       "metrics-listen"},
      {{"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--state-dir", "/proc/none"},
       73,
       "/proc/none"},
  };
  for (const Case& one : cases) {
    Run(one.arguments);
    EXPECT_EQ(ExitCode(), one.code) << one.says;
    EXPECT_THAT(Output(), HasSubstr(one.says));
  }
}

TEST_F(AgentProcessTest, ConfigShowPrintsWhatIsInForceAndWhereFromAsAFile) {
  std::ofstream(folder_.File("config")) << "node = from-file\nlabel = zone=west\n";
  ASSERT_EQ(::setenv("TACTUS_NODE", "from-environment", 1), 0);
  ASSERT_EQ(::setenv("TACTUS_TAINT", "gpu=only", 1), 0);
  const std::vector<std::string> show = {
      "config", "show", "--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh"};
  std::vector<std::string> arguments = show;
  arguments.insert(arguments.end(), {"--config", folder_.File("config")});

  Run(arguments);

  EXPECT_EQ(ExitCode(), 0);
  const std::string shown = Output();
  EXPECT_THAT(shown, ContainsRegex("coordinator = 127.0.0.1:1 +# flag\n"));
  EXPECT_THAT(shown, ContainsRegex("node = from-file +# file " + folder_.File("config") + "\n"));
  EXPECT_THAT(shown, ContainsRegex("taint = \"gpu=only\" +# environment\n"));
  EXPECT_THAT(shown, ContainsRegex("devices = cpu:0 +# default\n"));
  EXPECT_THAT(shown, ContainsRegex("# emulated-speeds is not set +# default\n"));
  ASSERT_EQ(::unsetenv("TACTUS_NODE"), 0);
  ASSERT_EQ(::unsetenv("TACTUS_TAINT"), 0);
  std::ofstream(folder_.File("config")) << shown;
  Run({"config", "show", "--config", folder_.File("config")});
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_THAT(Output(), ContainsRegex("taint = \"gpu=only\" +# file"));
}

TEST_F(AgentProcessTest, ConfigShowRefusesWhatTheAgentWouldRefuse) {
  Run({"config", "show", "--coordinator", "nowhere"});

  EXPECT_EQ(ExitCode(), 78);
  EXPECT_THAT(Output(), HasSubstr("coordinator: 'nowhere'"));
}

TEST_F(AgentProcessTest, WhatAFileSaysAndNobodyKnowsIsRefused) {
  std::ofstream(folder_.File("config")) << "nodde = a\n";

  Run({"--coordinator", "127.0.0.1:1", "--config", folder_.File("config")});

  EXPECT_EQ(ExitCode(), 64);
  EXPECT_EQ(Output(),
            "tactus-agent: --config: \"nodde\" is unknown; allowed are the options that --help "
            "lists\n");
}

TEST_F(AgentProcessTest, AnAddressThatNobodyCouldReachIsRefused) {
  Run({"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--state-dir",
       folder_.File("state"), "--address", "no such host"});

  EXPECT_EQ(ExitCode(), 78);
  EXPECT_THAT(Output(), HasSubstr("address: \"no such host\" does not resolve"));
}

TEST_F(AgentProcessTest, AMetricsPortInUseExitsWith69) {
  Run({"--coordinator", "127.0.0.1:1", "--worker-binary", "/bin/sh", "--state-dir",
       folder_.File("state"), "--metrics-listen", coordinator_.address()});

  EXPECT_EQ(ExitCode(), 69);
}

TEST_F(AgentProcessTest, ConnectionsWithoutAWordHoldUpNeitherAScrapeNorTheEnd) {
  RunWithCoordinator({"--metrics-listen", "127.0.0.1:0"});
  const std::string address = coordinator_.AwaitHello(1).hello().metrics_address();
  std::vector<std::unique_ptr<support::HttpClient>> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(std::make_unique<support::HttpClient>(address));

  const std::string page = support::Get(address, "/metrics");
  ::kill(pid_, SIGTERM);

  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain; version=0.0.4\r\n"));
  EXPECT_THAT(page, HasSubstr("\ntactus_agent_workers 0\n"));
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(AgentProcessTest, SigtermEndsWorkersAndExitsWithZero) {
  RunWithCoordinator();
  const pid_t worker = StartWorker("echo");

  ::kill(pid_, SIGTERM);

  EXPECT_EQ(ExitCode(), 0);
  EXPECT_TRUE(AwaitProcessEnd(worker));
}

TEST_F(AgentProcessTest, EverySignalThatAsksForTheEndLetsJobsSuspendFirst) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    FakeCoordinator coordinator({});
    Run({"--coordinator", coordinator.address(), "--node", "node-1", "--state-dir",
         folder_.File("state"), "--worker-binary", FakeWorker()});
    coordinator.StartWorker(5, "suspends");
    coordinator.AwaitMessage(
        [](const FromAgent& message) { return message.from_worker().message().has_ready(); });

    ::kill(pid_, signal);

    EXPECT_EQ(ExitCode(), 0);
    EXPECT_EQ(coordinator.uploaded().count("suspends-1/checkpoint.safetensors"), 1u);
    EXPECT_THAT(Output(), HasSubstr("agent left in time"));
  }
}

TEST_F(AgentProcessTest, WithoutADeadlineWorkersAreEndedAtOnce) {
  RunWithCoordinator({"--drain-deadline", "0"});
  const pid_t worker = StartWorker("suspends");

  ::kill(pid_, SIGTERM);

  EXPECT_EQ(ExitCode(), 0);
  EXPECT_TRUE(AwaitProcessEnd(worker));
  EXPECT_TRUE(coordinator_.uploaded().empty());
}

TEST_F(AgentProcessTest, AFurtherSignalDoesNotWaitForStubbornWorkers) {
  RunWithCoordinator({"--drain-deadline", "7d"});
  const pid_t worker = StartWorker("deaf");

  ::kill(pid_, SIGINT);
  ASSERT_TRUE(
      coordinator_.AwaitMessage([](const FromAgent& message) { return message.has_leaving(); })
          .has_leaving());
  ::kill(pid_, SIGTERM);
  ::kill(pid_, SIGINT);

  EXPECT_EQ(ExitCode(), 0);
  EXPECT_TRUE(AwaitProcessEnd(worker));
}

TEST_F(AgentProcessTest, WorkersEndWithAKilledAgent) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // the orphan becomes ours
  RunWithCoordinator();
  const pid_t worker = StartWorker("stubborn");

  ::kill(pid_, SIGKILL);

  EXPECT_TRUE(WIFSIGNALED(WaitStatus()));
  ASSERT_TRUE(AwaitProcessEnd(worker));
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

}  // namespace
}  // namespace tactus::agent
