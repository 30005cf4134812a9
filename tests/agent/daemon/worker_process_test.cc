#include "agent/daemon/worker_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

// Runs shell scripts as workers.
class WorkerProcessTest : public testing::Test {
 protected:
  ~WorkerProcessTest() override {
    control_.RunAndWait([this] { process_.reset(); });
    control_.Stop();
  }

  WorkerCommand Shell(const std::string& script) const {
    return {.arguments = {"/bin/sh", "-c", script},
            .environment = {"PATH=/usr/bin:/bin", "COLOUR=red"},
            .log_path = folder_.File("log")};
  }

  absl::Status Start(const WorkerCommand& command) {
    absl::Status status;
    control_.RunAndWait([&] {
      absl::StatusOr<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
          control_, command, [this](const WorkerExit& exit) { exit_.Set(exit); });
      status = process.status();
      if (process.ok()) process_ = *std::move(process);
    });
    return status;
  }

  WorkerExit ExitOf(const std::string& script) {
    EXPECT_TRUE(Start(Shell(script)).ok());
    return exit_.Await().value_or(WorkerExit{.exit_code = -99});
  }

  void Stop(Duration grace) {
    control_.RunAndWait([&] { process_->Stop(grace); });
  }

  // What the worker writes to a pipe of this name: waits for it to be that far.
  std::string ReadPipe(const std::string& path) {
    std::string text = ReadFile(path);
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string MakePipe() {
    const std::string path = folder_.File("pipe");
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  TemporaryFolder folder_;
  Once<WorkerExit> exit_;
  runtime::ControlThread control_;
  std::unique_ptr<WorkerProcess> process_;
};

TEST_F(WorkerProcessTest, TheExitCodeIsReported) {
  const WorkerExit exit = ExitOf("exit 7");

  EXPECT_EQ(exit.exit_code, 7);
  EXPECT_EQ(exit.signal, 0);
}

TEST_F(WorkerProcessTest, ItKeepsToTheProcessorsThatItIsGiven) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  unsigned last = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) last = cpu;
  }
  WorkerCommand command = Shell("grep -q 'Cpus_allowed_list:[[:space:]]*" + std::to_string(last) +
                                "$' /proc/self/status");
  command.cpus = {last};

  ASSERT_TRUE(Start(command).ok());

  EXPECT_EQ(exit_.Await().value_or(WorkerExit{.exit_code = -99}).exit_code, 0);
}

TEST_F(WorkerProcessTest, TheSignalThatEndedItIsReported) {
  const WorkerExit exit = ExitOf("kill -SEGV $$");

  EXPECT_EQ(exit.exit_code, -1);
  EXPECT_EQ(exit.signal, SIGSEGV);
}

TEST_F(WorkerProcessTest, BothOutputsAreLoggedToTheLastByte) {
  const WorkerExit exit = ExitOf("echo out; echo err >&2; printf last");

  EXPECT_EQ(exit.log_tail, "out\nerr\nlast");
  EXPECT_EQ(ReadFile(folder_.File("log")), "out\nerr\nlast");
}

TEST_F(WorkerProcessTest, OnlyTheEndOfALongLogIsReported) {
  const WorkerExit exit = ExitOf("yes line | head -n 100000; echo the end");

  EXPECT_EQ(exit.log_tail.size(), LogFile::kTailBytesMax);
  EXPECT_TRUE(exit.log_tail.ends_with("line\nthe end\n"));
  EXPECT_EQ(ReadFile(folder_.File("log")).size(), 100000u * 5 + 8);
}

TEST_F(WorkerProcessTest, ItFindsItsEnvironmentAndNoneOfOurs) {
  ASSERT_EQ(setenv("FLAVOUR", "sweet", 1), 0);

  EXPECT_EQ(ExitOf("echo $COLOUR-$FLAVOUR").log_tail, "red-\n");
}

TEST_F(WorkerProcessTest, ItInheritsNoDescriptorButTheThreeStandardOnes) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // deliberately without O_CLOEXEC
  ASSERT_GT(leaked, 2);

  const WorkerExit exit = ExitOf("test -e /proc/$$/fd/" + std::to_string(leaked) +
                                 " && echo leaked; read line; echo end");

  EXPECT_EQ(exit.log_tail, "end\n");
  ::close(leaked);
}

TEST_F(WorkerProcessTest, AProgramThatCannotBeRunIsAnError) {
  WorkerCommand command = Shell("exit 0");
  command.arguments[0] = folder_.File("missing");

  EXPECT_EQ(Start(command).code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerProcessTest, StoppingEndsTheWholeGroup) {
  const std::string pipe = MakePipe();
  ASSERT_TRUE(Start(Shell("sleep 1000 & echo $! > " + pipe + "; wait")).ok());
  const int grandchild = std::stoi(ReadPipe(pipe));

  Stop(Seconds(1000));

  EXPECT_EQ(exit_.Await()->signal, SIGTERM);
  EXPECT_TRUE(AwaitProcessEnd(grandchild));
}

TEST_F(WorkerProcessTest, AWorkerThatEndsTakesItsGroupAlong) {
  const std::string pipe = MakePipe();
  ASSERT_TRUE(Start(Shell("sleep 1000 & echo $! > " + pipe)).ok());
  const int grandchild = std::stoi(ReadPipe(pipe));

  EXPECT_EQ(exit_.Await()->exit_code, 0);
  EXPECT_TRUE(AwaitProcessEnd(grandchild));
}

TEST_F(WorkerProcessTest, AWorkerThatDoesNotListenIsKilledAfterTheGrace) {
  const std::string pipe = MakePipe();
  ASSERT_TRUE(
      Start(Shell("trap '' TERM; echo ready > " + pipe + "; while :; do sleep 1; done")).ok());
  ASSERT_EQ(ReadPipe(pipe), "ready");

  Stop(Seconds(0.05));

  EXPECT_EQ(exit_.Await()->signal, SIGKILL);
}

TEST_F(WorkerProcessTest, ALaterStopCanOnlyShortenTheGrace) {
  const std::string pipe = MakePipe();
  ASSERT_TRUE(
      Start(Shell("trap '' TERM; echo ready > " + pipe + "; while :; do sleep 1; done")).ok());
  ASSERT_EQ(ReadPipe(pipe), "ready");

  Stop(Seconds(1000));
  Stop(Seconds(0));
  Stop(Seconds(1000));

  EXPECT_EQ(exit_.Await()->signal, SIGKILL);
}

TEST_F(WorkerProcessTest, DestructionKillsAtOnceAndReportsNothing) {
  ASSERT_TRUE(Start(Shell("sleep 1000")).ok());
  const pid_t pid = process_->pid();

  control_.RunAndWait([this] { process_.reset(); });

  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace tactus::agent
