#include "agent/daemon/process_sighting.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace tactus::agent {
namespace {

TEST(ProcessSightingTest, ReadsStateAndTimesBehindAnyName) {
  const ProcessSighting seen = ParseProcessStat(
      "77 (a) b) T 1 77 77 0 -1 4194304 90 0 0 0 150 50 7 7 20 0 1 0 100 4096 10", 100);

  EXPECT_TRUE(seen.stopped);
  EXPECT_DOUBLE_EQ(seen.processor_seconds, 2.0);
}

TEST(ProcessSightingTest, OneThatRunsSleepsOrWaitsForItsDiskIsNotStopped) {
  for (const std::string state : {"R", "S", "D", "Z"}) {
    const std::string stat = "77 (worker) " + state + " 1 77 77 0 -1 0 90 0 0 0 1 1 0 0";
    EXPECT_FALSE(ParseProcessStat(stat, 100).stopped) << state;
  }
  EXPECT_TRUE(ParseProcessStat("7 (worker) t 1 7 7 0 -1 0 9 0 0 0 1 1 0 0", 100).stopped);
}

TEST(ProcessSightingTest, OneThatWaitsForItsDiskIsSeenTo) {
  EXPECT_TRUE(ParseProcessStat("7 (worker) D 1 7 7 0 -1 0 9 0 0 0 1 1 0 0", 100).storage);
  EXPECT_FALSE(ParseProcessStat("7 (worker) S 1 7 7 0 -1 0 9 0 0 0 1 1 0 0", 100).storage);
}

TEST(ProcessSightingTest, WhatIsNoStatTellsNothing) {
  for (const char* text : {"", "77", "77 (worker)", "77 (worker) T 1 2 3", ")"}) {
    EXPECT_FALSE(ParseProcessStat(text, 100).stopped) << text;
    EXPECT_EQ(ParseProcessStat(text, 100).processor_seconds, 0) << text;
  }
}

TEST(ProcessSightingTest, AProcessThatIsStoppedIsSeenToBe) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  EXPECT_FALSE(LookAtProcess(child).stopped);

  ::kill(child, SIGSTOP);
  while (!LookAtProcess(child).stopped) std::this_thread::yield();

  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(LookAtProcess(child).stopped);
}

TEST(ProcessSightingTest, ProcessorTimeGrows) {
  const double before = LookAtProcess(::getpid()).processor_seconds;
  volatile double sum = 0;
  while (LookAtProcess(::getpid()).processor_seconds <= before) {
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  }
}

TEST(ProcessSightingTest, WhoWasStartedIsBelowWhoStartedItWhateverItsSession) {
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::setsid();
      const pid_t self = ::getpid();
      [[maybe_unused]] const ssize_t written = ::write(ready[1], &self, sizeof self);
      for (;;) ::pause();
    }
    for (;;) ::pause();
  }
  pid_t grandchild = -1;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});

  EXPECT_TRUE(IsBelow(grandchild, child));
  EXPECT_TRUE(IsBelow(grandchild, ::getpid()));
  EXPECT_TRUE(IsBelow(child, child));
  EXPECT_FALSE(IsBelow(child, grandchild));
  EXPECT_FALSE(IsBelow(::getpid(), child));

  for (const pid_t pid : {grandchild, child}) ::kill(pid, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int end : ready) ::close(end);
}

}  // namespace
}  // namespace tactus::agent
