#include "runtime/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::runtime {
namespace {

class CpuQuotaTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path whole = root_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << content;
  }
  unsigned Of(unsigned cores) { return UsableCores(cores, root_.path()); }

  const TemporaryFolder root_;
};

TEST_F(CpuQuotaTest, WithoutGroupsAllCoresAreUsable) {
  EXPECT_EQ(Of(8), 8u);
  EXPECT_EQ(Of(0), 1u);
}

TEST_F(CpuQuotaTest, OfTheSecondKind) {
  Write("/proc/self/cgroup", "0::/pods/tactus\n");
  Write("/sys/fs/cgroup/pods/tactus/cpu.max", "250000 100000\n");
  EXPECT_EQ(Of(8), 2u);
  EXPECT_EQ(Of(1), 1u) << "no more than there are";

  Write("/sys/fs/cgroup/pods/tactus/cpu.max", "50000 100000\n");
  EXPECT_EQ(Of(8), 1u);
  Write("/sys/fs/cgroup/pods/tactus/cpu.max", "max 100000\n");
  EXPECT_EQ(Of(8), 8u);
}

TEST_F(CpuQuotaTest, TheLeastOfAGroupAndThoseAboveCounts) {
  Write("/proc/self/cgroup", "0::/pods/tactus\n");
  Write("/sys/fs/cgroup/pods/cpu.max", "300000 100000\n");
  Write("/sys/fs/cgroup/pods/tactus/cpu.max", "600000 100000\n");
  EXPECT_EQ(Of(8), 3u);
}

TEST_F(CpuQuotaTest, OfTheFirstKind) {
  Write("/proc/self/cgroup", "7:memory:/m\n5:cpu,cpuacct:/tac0\n1:name=systemd:/\n");
  Write("/sys/fs/cgroup/cpu/tac0/cpu.cfs_quota_us", "400000\n");
  Write("/sys/fs/cgroup/cpu/tac0/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/memory/m/cpu.max", "100000 100000\n");
  EXPECT_EQ(Of(8), 4u);

  Write("/sys/fs/cgroup/cpu/tac0/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Of(8), 8u);
}

// A container's own group is what it sees at the top, whatever the path says.
TEST_F(CpuQuotaTest, WithinAContainerTheTopIsItsOwn) {
  Write("/proc/self/cgroup", "0::/../../kubepods/pod1/abc\n");
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Of(16), 2u);
}

TEST_F(CpuQuotaTest, WhatIsNoNumberIsNoQuota) {
  Write("/proc/self/cgroup", "0::/a\nnonsense\n:\n");
  Write("/sys/fs/cgroup/a/cpu.max", "many few\n");
  EXPECT_EQ(Of(4), 4u);
  Write("/sys/fs/cgroup/a/cpu.max", "100000 0\n");
  EXPECT_EQ(Of(4), 4u);
}

}  // namespace
}  // namespace tactus::runtime
