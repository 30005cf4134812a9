#include "agent/worker/sigterm.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace tactus::worker {
namespace {

int WaitStatus(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// Of a child that keeps SIGTERM, tells so, and does what is to be tested.
int WaitStatusOf(const std::function<void()>& child_does,
                 const std::function<void(pid_t)>& parent_does) {
  int told[2];
  EXPECT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    KeepSigterm();
    if (::write(told[1], "k", 1) != 1) ::_exit(2);
    child_does();
    ::_exit(SigtermsKept() > 0 ? 0 : 1);
  }
  char byte = 0;
  EXPECT_EQ(::read(told[0], &byte, 1), 1);
  parent_does(child);
  ::close(told[0]);
  ::close(told[1]);
  return WaitStatus(child);
}

TEST(SigtermTest, OfTheParentItIsTheEnd) {
  const int status = WaitStatusOf(
      [] {
        while (true) ::pause();
      },
      [](pid_t child) { ::kill(child, SIGTERM); });

  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(SigtermTest, OfAnotherProcessItIsKept) {
  const int status = WaitStatusOf(
      [] {
        const pid_t other = ::fork();
        if (other == 0) {
          ::kill(::getppid(), SIGTERM);
          ::_exit(0);
        }
        WaitStatus(other);
      },
      [](pid_t) {});

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SigtermTest, EachIsCountedSoThatWhoBeginsLaterKnowsItsOwn) {
  const int status = WaitStatusOf(
      [] {
        for (std::uint32_t kept = 0; kept < 3; ++kept) {
          if (SigtermsKept() != kept) ::_exit(3);
          const pid_t other = ::fork();
          if (other == 0) {
            ::kill(::getppid(), SIGTERM);
            ::_exit(0);
          }
          WaitStatus(other);
        }
        ::_exit(SigtermsKept() == 3 ? 0 : 4);
      },
      [](pid_t) {});

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SigtermTest, UntilOneComesNoneIsKept) {
  const int status = WaitStatusOf([] {}, [](pid_t) {});

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace tactus::worker
