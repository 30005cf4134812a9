#include "client/local/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "client/observe/event_loop.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;

class ChildProcessTest : public ::testing::Test {
 protected:
  absl::StatusOr<ChildProcess> Shell(const std::string& script) {
    return ChildProcess::Start({.program = "/bin/sh",
                                .arguments = {"-c", script},
                                .log_path = folder_.path() + "/child.log"});
  }

  // The child has ended within 30 seconds.
  void Await(ChildProcess& child) {
    const auto ended = [&] { return !child.IsRunning(); };
    ASSERT_EQ(loop_.RunUntil(ended, Seconds(30)), EventLoop::Outcome::kDone);
  }

  TemporaryFolder folder_;
  EventLoop loop_{{}};
};

TEST_F(ChildProcessTest, ItsEndIsToldWithItsLastWords) {
  auto child = Shell("echo first; echo 'port is taken' >&2; exit 69");
  ASSERT_TRUE(child.ok()) << child.status();

  Await(*child);

  EXPECT_EQ(child->Obituary(), "sh ended with code 69: port is taken");
}

TEST_F(ChildProcessTest, WithoutALogItsOutputGoesWhereOursGoes) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  auto child = ChildProcess::Start(
      {.program = "/bin/sh", .arguments = {"-c", "echo out; echo err >&2; exit 7"}});
  ASSERT_TRUE(child.ok()) << child.status();
  Await(*child);

  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "out\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "err\n");
  EXPECT_EQ(child->exit_code(), 7);
  EXPECT_EQ(child->Obituary(), "sh ended with code 7");
}

TEST_F(ChildProcessTest, SignalsReachIt) {
  auto child = Shell("exec sleep 600");
  ASSERT_TRUE(child.ok()) << child.status();

  child->Signal(SIGTERM);
  Await(*child);

  EXPECT_EQ(child->Obituary(), "sh was ended by signal 15");
  EXPECT_EQ(child->exit_code(), 128 + SIGTERM);
}

TEST_F(ChildProcessTest, KillEndsItsGroupToo) {
  auto child = Shell("trap '' TERM; sleep 600 & wait");
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t group = child->pid();

  child->Kill();

  EXPECT_FALSE(child->IsRunning());
  EXPECT_EQ(loop_.RunUntil([&] { return kill(-group, 0) != 0; }, Seconds(30)),
            EventLoop::Outcome::kDone);
}

TEST_F(ChildProcessTest, DestructionEndsIt) {
  pid_t pid = 0;
  {
    auto child = Shell("exec sleep 600");
    ASSERT_TRUE(child.ok()) << child.status();
    pid = child->pid();
  }

  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(ChildProcessTest, ItRunsInAGroupOfItsOwn) {
  auto child = Shell("exec sleep 600");
  ASSERT_TRUE(child.ok()) << child.status();

  EXPECT_EQ(getpgid(child->pid()), child->pid());
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsAnError) {
  const auto child =
      ChildProcess::Start({.program = "/no/such", .log_path = folder_.path() + "/child.log"});

  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/no/such"));
}

TEST_F(ChildProcessTest, ALogThatCannotBeWrittenIsAnError) {
  const auto child = ChildProcess::Start({.program = "/bin/true", .log_path = "/no/such/log"});

  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/no/such/log"));
}

TEST_F(ChildProcessTest, LastLinesAreFoundInLongAndEmptyFiles) {
  const std::string path = folder_.path() + "/log";
  EXPECT_EQ(LastLine(path), "");
  std::ofstream(path) << "\n \n";
  EXPECT_EQ(LastLine(path), "");
  std::ofstream(path) << std::string(100'000, 'x') << "\nlast\x1b[1m\n\n";
  EXPECT_EQ(LastLine(path), "last [1m");
}

TEST(EventLoopTest, CountsSignalsInsteadOfEnding) {
  EventLoop loop({SIGUSR1});
  raise(SIGUSR1);

  EXPECT_EQ(loop.RunUntil([] { return false; }, Seconds(30)), EventLoop::Outcome::kInterrupted);
  EXPECT_EQ(loop.interrupts(), 1);
  EXPECT_EQ(loop.RunUntil([] { return true; }, Seconds(30)), EventLoop::Outcome::kDone);
  EXPECT_EQ(loop.RunUntil([] { return false; }, Duration::zero()), EventLoop::Outcome::kTimedOut);
}

}  // namespace
}  // namespace tactus::client
