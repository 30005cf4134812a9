#include "agent/daemon/memory_kills.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

class MemoryKillsTest : public testing::Test {
 protected:
  void Set(int in_cgroup, int on_host) {
    std::ofstream(files_.cgroup_events)
        << "low 0\nhigh 7\nmax 9\noom 4\noom_kill " << in_cgroup << "\noom_group_kill 0\n";
    std::ofstream(files_.vmstat) << "nr_free_pages 5\noom_kill " << on_host << "\nnr_other 3\n";
  }

  TemporaryFolder folder_;
  MemoryKillFiles files_{.cgroup = "/tactus",
                         .cgroup_events = folder_.File("memory.events"),
                         .vmstat = folder_.File("vmstat")};
};

TEST_F(MemoryKillsTest, TheCgroupsWordIsCertain) {
  Set(0, 2);
  const MemoryKills before = CountMemoryKills(files_);
  Set(1, 3);

  EXPECT_EQ(
      MemoryKillWords(files_, before, CountMemoryKills(files_)),
      "killed by the kernel for want of memory (oom_kill of cgroup /tactus rose from 0 to 1)");
}

TEST_F(MemoryKillsTest, TheHostsIsNot) {
  Set(4, 2);
  const MemoryKills before = CountMemoryKills(files_);
  Set(4, 3);

  EXPECT_EQ(MemoryKillWords(files_, before, CountMemoryKills(files_)),
            "perhaps killed by the kernel for want of memory (oom_kill of the host rose from 2 to "
            "3)");
}

TEST_F(MemoryKillsTest, WhereNothingRoseOrNobodyCountsNothingIsSaid) {
  EXPECT_EQ(MemoryKillWords(files_, CountMemoryKills(files_), CountMemoryKills(files_)), "");
  const MemoryKills unknown = CountMemoryKills(files_);
  Set(1, 1);
  const MemoryKills known = CountMemoryKills(files_);

  EXPECT_EQ(MemoryKillWords(files_, unknown, known), "");
  EXPECT_EQ(MemoryKillWords(files_, known, known), "");
}

TEST_F(MemoryKillsTest, ThisHostCounts) {
  EXPECT_TRUE(CountMemoryKills(FindMemoryKillFiles()).on_host.has_value());
}

}  // namespace
}  // namespace tactus::agent
