#include "agent/box/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace tactus::box {
namespace {

using testing::HasSubstr;

// Where the hierarchy of version 2 is; empty: nowhere, or this user cannot make groups in it.
std::string Hierarchy() {
  for (const char* place : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string folder(place);
    const bool second = std::filesystem::exists(folder + "/cgroup.controllers");
    if (second && ::access((folder + "/cgroup.procs").c_str(), W_OK) == 0) return folder;
  }
  return "";
}

bool AwaitGone(const std::string& folder) {
  for (int i = 0; i < 1000 && std::filesystem::exists(folder); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return !std::filesystem::exists(folder);
}

class CgroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    top_ = Hierarchy();
    if (top_.empty()) GTEST_SKIP() << "no cgroups of version 2 that this user can make";
  }
  absl::StatusOr<std::unique_ptr<Cgroups>> Open() const {
    return Cgroups::Open({.folder = top_, .name = name_});
  }
  // A child in the group that has left its session and group.
  static pid_t StartIn(const Cgroup& cgroup) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setsid();
    if (::write(cgroup.procs()->get(), "0", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  static bool IsIn(const std::string& folder, pid_t pid) {
    std::ifstream in(folder + "/cgroup.procs");
    for (pid_t found = 0; in >> found;) {
      if (found == pid) return true;
    }
    return false;
  }

  std::string top_;
  const std::string name_ = "tactus-test-" + std::to_string(::getpid());
};

TEST_F(CgroupsTest, WhatIsInAGroupEndsWithItAndNothingIsLeft) {
  auto cgroups = Open();
  ASSERT_TRUE(cgroups.ok()) << cgroups.status();
  auto cgroup = (*cgroups)->Make("7", {});
  ASSERT_TRUE(cgroup.ok()) << cgroup.status();
  const std::string folder = top_ + "/" + name_;
  const pid_t child = StartIn(**cgroup);
  while (!IsIn(folder + "/7", child)) std::this_thread::yield();

  cgroup->reset();

  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(AwaitGone(folder + "/7"));
  cgroups->reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(CgroupsTest, WhatAFormerAgentLeftIsEndedAndNobodyWaitsForIt) {
  const std::string left = top_ + "/" + name_ + "/left";
  std::filesystem::create_directories(left);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  std::ofstream(left + "/cgroup.procs") << child;

  auto cgroups = Open();

  ASSERT_TRUE(cgroups.ok()) << cgroups.status();
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(AwaitGone(left));
}

TEST_F(CgroupsTest, ANameThatIsStillOnItsWayOutIsNotWaitedFor) {
  auto cgroups = Open();
  ASSERT_TRUE(cgroups.ok()) << cgroups.status();

  const auto first = (*cgroups)->Make("7", {});
  const auto second = (*cgroups)->Make("7", {});

  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE((*first)->procs()->get(), (*second)->procs()->get());
  EXPECT_TRUE(std::filesystem::exists(top_ + "/" + name_ + "/7.1"));
}

TEST_F(CgroupsTest, AGroupThatCannotBeMadeLeavesNothing) {
  auto cgroups = Open();
  ASSERT_TRUE(cgroups.ok()) << cgroups.status();

  EXPECT_FALSE((*cgroups)->Make("no/such", {}).ok());

  cgroups->reset();
  EXPECT_FALSE(std::filesystem::exists(top_ + "/" + name_));
}

TEST_F(CgroupsTest, LimitsAreSetWhereTheirControllersAre) {
  auto cgroups = Open();
  ASSERT_TRUE(cgroups.ok()) << cgroups.status();
  if (!(*cgroups)->has_memory() || !(*cgroups)->has_tasks()) {
    GTEST_SKIP() << "the controllers memory and pids are not in " << top_;
  }
  auto cgroup = (*cgroups)->Make("7", {.memory_bytes_max = 1 << 26, .tasks_max = 20});
  ASSERT_TRUE(cgroup.ok()) << cgroup.status();
  std::string memory, tasks;
  std::ifstream(top_ + "/" + name_ + "/7/memory.max") >> memory;
  std::ifstream(top_ + "/" + name_ + "/7/pids.max") >> tasks;

  EXPECT_EQ(memory, "67108864");
  EXPECT_EQ(tasks, "20");
}

TEST(CgroupsPlaceTest, AFolderThatIsNoCgroupIsRefused) {
  TemporaryFolder folder;

  EXPECT_THAT(std::string(Cgroups::Open({.folder = folder.path(), .name = "x"}).status().message()),
              HasSubstr("is no cgroup of version 2"));
}

}  // namespace
}  // namespace tactus::box
