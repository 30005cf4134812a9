#include "agent/daemon/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(InterfaceOfTest, KnowsAnInterfaceByItsNameAndItsAddress) {
  EXPECT_EQ(InterfaceOf("lo"), "lo");
  EXPECT_EQ(InterfaceOf("127.0.0.1"), "lo");
}

TEST(InterfaceOfTest, WhatIsNotOfThisHostHasNone) {
  for (const std::string address : {"", "192.0.2.1", "2001:db8::1", "a.host.example", "lo0x"}) {
    EXPECT_EQ(InterfaceOf(address), "") << address;
  }
}

class CpusNearTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::vector<unsigned> Near(const std::string& bus) { return CpusNear(folder_.path(), bus); }

 private:
  TemporaryFolder folder_;
};

TEST_F(CpusNearTest, AreThoseOfTheDevicesNode) {
  Write("bus/pci/devices/0000:3b:00.0/numa_node", "1");
  Write("devices/system/node/node1/cpulist", "4-6,12,14-15");

  EXPECT_THAT(Near("00000000:3B:00.0"), ElementsAre(4, 5, 6, 12, 14, 15));
  EXPECT_THAT(Near("0000:3b:00.0"), ElementsAre(4, 5, 6, 12, 14, 15));
}

TEST_F(CpusNearTest, AreNotKnownWhereTheKernelDoesNotSay) {
  Write("bus/pci/devices/0000:3b:00.0/numa_node", "-1");
  Write("bus/pci/devices/0000:3c:00.0/numa_node", "2");  // a node that is not there

  for (const std::string bus : {"", "nonsense", "0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0"}) {
    EXPECT_THAT(Near(bus), IsEmpty()) << bus;
  }
}

TEST_F(CpusNearTest, AListThatIsNoneIsNotUsedInPart) {
  Write("bus/pci/devices/0000:3b:00.0/numa_node", "0");
  for (const std::string list : {"0-", "1,,2", "0-3;5", "x", "99999999"}) {
    Write("devices/system/node/node0/cpulist", list);
    EXPECT_THAT(Near("0000:3b:00.0"), IsEmpty()) << list;
  }
}

TEST(OwnCoreTest, EachDeviceHasAProcessorOfItsOwnWhereThereAreAsMany) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const auto cores = static_cast<std::size_t>(CPU_COUNT(&allowed));
  std::set<unsigned> seen;
  for (std::size_t device = 0; device < cores; ++device) {
    const std::vector<unsigned> own = OwnCore(device, cores);
    ASSERT_EQ(own.size(), 1u);
    EXPECT_TRUE(CPU_ISSET(own[0], &allowed));
    seen.insert(own[0]);
  }
  EXPECT_EQ(seen.size(), cores);
  EXPECT_TRUE(OwnCore(0, cores + 1).empty());
}

#if defined(__x86_64__)
// Whether the kernel says that the processor has it, as a word of the line of its flags.
bool KernelHas(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return (line + ' ').find(' ' + flag + ' ') != line.npos;
  }
  return false;
}

TEST(OpenBlasKernelsTest, AreThoseOfTheWidestVectorsThatTheKernelSaysThereAre) {
  const bool wide = KernelHas("avx512f") && KernelHas("avx512dq") && KernelHas("avx512bw") &&
                    KernelHas("avx512vl");
  const bool narrow = KernelHas("avx2") && KernelHas("fma");

  EXPECT_EQ(OpenBlasKernels(), wide ? "SkylakeX" : narrow ? "Haswell" : "");
}
#endif

}  // namespace
}  // namespace tactus::agent
