#include "client/local/local_workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

class LocalWorkersTest : public ::testing::Test {
 protected:
  // A process as /proc tells of it. session: whose it is in; 0: its own.
  void Tell(pid_t pid, const std::vector<std::string>& words,
            const std::vector<std::string>& environment, pid_t parent = 1, pid_t session = 0) {
    const std::string folder = proc_.File(std::to_string(pid));
    std::filesystem::create_directory(folder);
    Write(folder + "/cmdline", words);
    Write(folder + "/environ", environment);
    const pid_t leader = session == 0 ? pid : session;
    std::ofstream(folder + "/stat")
        << pid << " (tactus) w) S " << parent << " " << leader << " " << leader << " 0";
  }

  void TellWorker(pid_t pid, const std::string& job, const std::string& id, pid_t agent = 1) {
    const std::string socket = "/run/agent/" + id + ".sock";
    Tell(pid, {"/usr/lib/tactus-worker", "--socket", socket}, EnvironmentOf(job, socket), agent);
  }

  static std::vector<std::string> EnvironmentOf(const std::string& job, const std::string& socket) {
    return {"PATH=/bin", "TACTUS_JOB_NAME=" + job, "TACTUS_CONTROL_SOCKET=" + socket};
  }

  LocalWorkersTest() { Tell(1, {"tactus-agent", "--coordinator", "c0:7070"}, {}); }

  static WorkersOf Of(const std::string& job) { return {.job = job, .coordinator = "c0:7070"}; }

  std::vector<std::uint64_t> Ids(const std::string& job) const {
    std::vector<std::uint64_t> ids;
    for (const LocalWorker& worker : FindLocalWorkers(proc_.path(), Of(job)))
      ids.push_back(worker.id);
    return ids;
  }

  TemporaryFolder proc_;

 private:
  static void Write(const std::string& path, const std::vector<std::string>& words) {
    std::ofstream file(path, std::ios::binary);
    for (const std::string& word : words) file << word << '\0';
  }
};

TEST_F(LocalWorkersTest, AreThoseOfTheJobByTheirIds) {
  TellWorker(11, "demo-1", "9");
  TellWorker(12, "demo-1", "4");
  TellWorker(13, "demo-10", "5");

  EXPECT_EQ(Ids("demo-1"), (std::vector<std::uint64_t>{4, 9}));
  EXPECT_EQ(FindLocalWorkers(proc_.path(), Of("demo-1"))[0].pid, 12);
}

TEST_F(LocalWorkersTest, AProgramOfTheUsersIsOne) {
  Tell(11, {"/usr/bin/python3", "train.py"}, EnvironmentOf("demo-1", "/run/agent/9.sock"));
  Tell(12, {"/bin/sh", "train.sh", "--array", "x"}, EnvironmentOf("demo-1", "/run/agent/4.sock"));

  EXPECT_EQ(Ids("demo-1"), (std::vector<std::uint64_t>{4, 9}));
}

TEST_F(LocalWorkersTest, WhatAWorkerStartedIsNone) {
  std::vector<std::string> environment = EnvironmentOf("demo-1", "/run/3.sock");
  environment.push_back("TACTUS_COORDINATOR=c0:7070");  // its agent's
  Tell(10, {"python3", "train.py"}, environment);
  Tell(11, {"python3", "train.py"}, environment, 10, 10);  // reads samples
  Tell(12, {"setsid", "true"}, environment, 10);
  Tell(13, {"sh", "-c", "true"}, environment, 1, 10);  // whose parent has ended

  ASSERT_EQ(Ids("demo-1"), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(FindLocalWorkers(proc_.path(), Of("demo-1"))[0].pid, 10);
}

TEST_F(LocalWorkersTest, WhatDoesNotSayWhoItIsIsNone) {
  Tell(11, {"w"}, EnvironmentOf("demo-1", "/run/x3.sock"));
  Tell(12, {"w"}, EnvironmentOf("demo-1", "/run/3"));
  Tell(13, {"w"}, {"TACTUS_JOB_NAME=demo-1"});
  Tell(14, {}, {});
  std::filesystem::create_directory(proc_.File("15"));
  std::filesystem::create_directory(proc_.File("self"));

  EXPECT_TRUE(Ids("demo-1").empty());
}

TEST_F(LocalWorkersTest, AProcessOfSeveralJobsIsNone) {
  Tell(11, {"/usr/lib/tactus-worker", "--array", "/run/agent/a1.sock"},
       EnvironmentOf("demo-1", "/run/agent/4.sock"));

  EXPECT_TRUE(Ids("demo-1").empty());
}

TEST_F(LocalWorkersTest, AreThoseOfAgentsOfTheCoordinator) {
  Tell(2, {"tactus-agent", "--coordinator", "c1:7070"}, {"TACTUS_COORDINATOR=c0:7070"});
  Tell(3, {"tactus-agent", "--coordinator=c0:7070"}, {});
  Tell(4, {"tactus-agent"}, {"TACTUS_COORDINATOR=c0:7070"});
  Tell(5, {"tactus-agent", "--coordinator"}, {});
  for (pid_t agent = 2; agent <= 6; ++agent) {
    TellWorker(10 + agent, "demo-1", std::to_string(agent), agent);
  }

  EXPECT_EQ(Ids("demo-1"), (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(LocalWorkersTest, OneThatIsThereIsSignalledWithWhatItStarted) {
  std::array<int, 2> alive{};
  ASSERT_EQ(pipe(alive.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    static_cast<void>(fork());
    [[maybe_unused]] const ssize_t written = write(alive[1], "!", 1);
    for (;;) pause();
  }
  close(alive[1]);
  char byte = 0;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(read(alive[0], &byte, 1), 1);
  TellWorker(child, "demo-1", "3");

  EXPECT_TRUE(SignalWorker(proc_.path(), Of("demo-1"), {.pid = child, .id = 3}, SIGKILL).ok());

  EXPECT_EQ(read(alive[0], &byte, 1), 0) << "nobody is left who has the other end";
  close(alive[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const absl::Status gone =
      SignalWorker(proc_.path(), Of("demo-1"), {.pid = child, .id = 3}, SIGKILL);
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
}

TEST_F(LocalWorkersTest, AProcessIdThatIsAnothersNowIsLeftAlone) {
  TellWorker(getpid(), "demo-1", "4");

  const absl::Status status =
      SignalWorker(proc_.path(), Of("demo-1"), {.pid = getpid(), .id = 3}, SIGKILL);

  EXPECT_EQ(status.message(), "worker 3 has ended");
}

}  // namespace
}  // namespace tactus::client
