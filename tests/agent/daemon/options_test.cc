#include "agent/daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::StartsWith;

AgentFlags Flags() {
  AgentFlags flags;
  flags.coordinator = "localhost:7000";
  flags.state_folder = "/tmp/state";
  flags.worker_binary = "/bin/sh";
  return flags;
}

const Host kHost{
    .name = "host-1", .processor_model = "Some CPU", .cores = 2, .memory_bytes = 1 << 30};

TEST(AgentOptionsTest, DefaultsFollowFromTheHost) {
  const absl::StatusOr<AgentOptions> options = Resolve(Flags(), kHost);

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->node, "host-1");
  ASSERT_EQ(options->devices.size(), 1u);
  EXPECT_EQ(options->devices[0].name, "cpu:0");
  EXPECT_EQ(options->devices[0].model, "Some CPU");
  EXPECT_EQ(options->devices[0].emulated_speed, 0);
  EXPECT_EQ(options->devices[0].memory_bytes, 1u << 30);
  EXPECT_TRUE(options->labels.empty());
  EXPECT_TRUE(options->taints.empty());
  EXPECT_EQ(options->threads_per_cpu_device, 2u);
}

TEST(AgentOptionsTest, SpeedsAreGivenToDevicesAndTheFactorLeavesRoomForTheirSum) {
  AgentFlags flags = Flags();
  flags.devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
  flags.emulated_speeds = {1, 1, 0.5, 0.25};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, kHost);

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->devices[3].emulated_speed, 0.25);
  EXPECT_DOUBLE_EQ(options->emulated_cpu_factor, 1.15 * 2.75 / 2);
  EXPECT_EQ(options->threads_per_cpu_device, 1u);
}

TEST(AgentOptionsTest, TheFactorIsNeverBelowItsHeadroomAndCanBeGiven) {
  AgentFlags flags = Flags();
  flags.emulated_speeds = {0.5};
  EXPECT_DOUBLE_EQ(Resolve(flags, kHost)->emulated_cpu_factor, 1.15);

  flags.emulated_cpu_factor = 3;
  EXPECT_DOUBLE_EQ(Resolve(flags, kHost)->emulated_cpu_factor, 3);
}

Host HostWithGpus(std::size_t count) {
  Host host = kHost;
  for (std::size_t i = 0; i < count; ++i) {
    host.gpus.push_back({.index = static_cast<unsigned>(i),
                         .uuid = "GPU-" + std::to_string(i),
                         .model = "Some GPU",
                         .memory_bytes = 5});
  }
  return host;
}

TEST(AgentOptionsTest, GpusAreOfferedByTheirNumberAsNvmlHasThem) {
  AgentFlags flags = Flags();
  flags.devices = {"cuda:1", "cpu:0"};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, HostWithGpus(2));

  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->devices.size(), 2u);
  const DeviceOptions& device = options->devices[0];
  EXPECT_EQ(device.name, "cuda:1");
  EXPECT_TRUE(device.cuda);
  EXPECT_EQ(device.gpu, 1u);
  EXPECT_EQ(device.uuid, "GPU-1");
  EXPECT_EQ(device.model, "Some GPU");
  EXPECT_EQ(device.memory_bytes, 5u);
  EXPECT_EQ(device.fault, "");
  EXPECT_FALSE(options->devices[1].cuda);
}

TEST(AgentOptionsTest, AGpusWorkersKeepToTheProcessorsNextToIt) {
  const TemporaryFolder sysfs;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(sysfs.File(path)).parent_path());
    std::ofstream(sysfs.File(path)) << text << '\n';
  };
  write("bus/pci/devices/0000:3b:00.0/numa_node", "1");
  write("devices/system/node/node1/cpulist", "8-9");
  Host host = HostWithGpus(2);
  host.sysfs = sysfs.path();
  host.gpus[1].pci_bus_id = "00000000:3B:00.0";
  AgentFlags flags = Flags();
  flags.devices = {"gpus", "cpu:0"};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, host);

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->devices[0].cpus, std::vector<unsigned>());
  EXPECT_EQ(options->devices[1].cpus, (std::vector<unsigned>{8, 9}));
  EXPECT_EQ(options->devices[2].cpus, std::vector<unsigned>());
}

TEST(AgentOptionsTest, AllGpusOfTheHostCanBeOfferedAtOnce) {
  AgentFlags flags = Flags();
  flags.devices = {"cpu:0", "gpus"};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, HostWithGpus(3));

  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->devices.size(), 4u);
  EXPECT_EQ(options->devices[3].name, "cuda:2");
  EXPECT_EQ(options->devices[3].uuid, "GPU-2");
}

TEST(AgentOptionsTest, AGpuThatCannotBeReadIsOfferedWithAFault) {
  Host host = HostWithGpus(2);
  host.gpus[0] = {.index = 0};
  AgentFlags flags = Flags();
  flags.devices = {"gpus"};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, host);

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->devices[0].fault, "its UUID cannot be read");
  EXPECT_EQ(options->devices[1].fault, "");
}

TEST(AgentOptionsTest, AGpuThatIsNotThereIsRefusedWithThoseThatAre) {
  Host bare = kHost;
  bare.no_gpus_reason = "no driver is installed";
  struct Case {
    std::string device;
    Host host;
    std::string message;
  };
  const Case cases[] = {
      {"cuda:3", HostWithGpus(2), "devices: 'cuda:3': this host has GPUs 0 to 1"},
      {"cuda:1", HostWithGpus(1), "devices: 'cuda:1': this host has GPU 0 alone"},
      {"cuda:0", kHost, "devices: 'cuda:0': this host has no GPU"},
      {"cuda:0", bare, "devices: 'cuda:0': no driver is installed"},
      {"gpus", kHost, "devices: 'gpus': this host has no GPU"},
      {"gpus", bare, "devices: 'gpus': no driver is installed"},
      {"cuda:", HostWithGpus(2), "devices: 'cuda:': allowed is cuda:N, with the number of a GPU"},
      {"cuda:01", HostWithGpus(2),
       "devices: 'cuda:01': allowed is cuda:N, with the number of a GPU"},
      {"cuda:-1", HostWithGpus(2),
       "devices: 'cuda:-1': allowed is cuda:N, with the number of a GPU"},
  };
  for (const Case& one : cases) {
    AgentFlags flags = Flags();
    flags.devices = {one.device};

    const absl::Status status = Resolve(flags, one.host).status();

    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.device;
    EXPECT_EQ(std::string(status.message()), one.message);
  }
}

TEST(AgentOptionsTest, AGpuIsNotGivenTwice) {
  AgentFlags flags = Flags();
  flags.devices = {"cuda:0", "gpus"};

  EXPECT_EQ(std::string(Resolve(flags, HostWithGpus(1)).status().message()),
            "devices: 'cuda:0' is given twice");
}

TEST(AgentOptionsTest, GpusAreLookedForOnlyWhereTheyAreNamed) {
  AgentFlags flags = Flags();
  EXPECT_FALSE(NamesGpus(flags));
  flags.devices = {"cpu:0"};
  EXPECT_FALSE(NamesGpus(flags));
  flags.devices = {"cpu:0", "cuda:4"};
  EXPECT_TRUE(NamesGpus(flags));
  flags.devices = {"gpus"};
  EXPECT_TRUE(NamesGpus(flags));
}

TEST(AgentOptionsTest, LabelsAndTaintsAreTakenApart) {
  AgentFlags flags = Flags();
  flags.labels = {"zone=west", "empty=", "formula=a=b"};
  flags.taints = {"gpu", "team=vision", "team="};

  const absl::StatusOr<AgentOptions> options = Resolve(flags, kHost);

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->labels, (std::map<std::string, std::string>{
                                 {"zone", "west"}, {"empty", ""}, {"formula", "a=b"}}));
  EXPECT_EQ(options->taints, flags.taints);
}

TEST(AgentOptionsTest, EachWrongFlagIsNamed) {
  struct Case {
    std::string flag;
    std::function<void(AgentFlags&)> spoil;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = ""; }},
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = "host"; }},
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = ":7000"; }},
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = "host:0"; }},
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = "host:65536"; }},
      {"coordinator", [](AgentFlags& flags) { flags.coordinator = "host:70x"; }},
      {"node", [](AgentFlags& flags) { flags.node = "Upper"; }},
      {"node", [](AgentFlags& flags) { flags.node = std::string(64, 'a'); }},
      {"devices", [](AgentFlags& flags) { flags.devices = {"gpu"}; }},
      {"devices",
       [](AgentFlags& flags) {
         flags.devices = {"cpu:0", "cpu:0"};
       }},
      {"emulated-speeds",
       [](AgentFlags& flags) {
         flags.emulated_speeds = {1, 2};
       }},
      {"emulated-speeds", [](AgentFlags& flags) { flags.emulated_speeds = {0}; }},
      {"emulated-speeds", [](AgentFlags& flags) { flags.emulated_speeds = {-1}; }},
      {"emulated-speeds", [=](AgentFlags& flags) { flags.emulated_speeds = {nan}; }},
      {"emulated-cpu-factor", [](AgentFlags& flags) { flags.emulated_cpu_factor = 0.5; }},
      {"emulated-cpu-factor", [=](AgentFlags& flags) { flags.emulated_cpu_factor = nan; }},
      {"address", [](AgentFlags& flags) { flags.address = ""; }},
      {"state-dir", [](AgentFlags& flags) { flags.state_folder = ""; }},
      {"label", [](AgentFlags& flags) { flags.labels = {"zone"}; }},
      {"label", [](AgentFlags& flags) { flags.labels = {"=west"}; }},
      {"label", [](AgentFlags& flags) { flags.labels = {"zone=we\nst"}; }},
      {"label", [](AgentFlags& flags) { flags.labels = {std::string(64, 'a') + "=b"}; }},
      {"label", [](AgentFlags& flags) { flags.labels = {"a=" + std::string(64, 'b')}; }},
      {"label",
       [](AgentFlags& flags) {
         flags.labels = {"a=1", "a=2"};
       }},
      {"label",
       [](AgentFlags& flags) {
         for (int i = 0; i < 65; ++i) flags.labels.push_back(std::to_string(i) + "=x");
       }},
      {"taint", [](AgentFlags& flags) { flags.taints = {""}; }},
      {"taint", [](AgentFlags& flags) { flags.taints = {"=x"}; }},
      {"taint", [](AgentFlags& flags) { flags.taints = {"a=\x7f"}; }},
      {"taint", [](AgentFlags& flags) { flags.taints.assign(17, "a"); }},
      {"worker-binary", [](AgentFlags& flags) { flags.worker_binary = "/nowhere/worker"; }},
  };
  for (const Case& one : cases) {
    AgentFlags flags = Flags();
    one.spoil(flags);

    const absl::Status status = Resolve(flags, kHost).status();

    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.flag;
    EXPECT_THAT(std::string(status.message()), StartsWith(one.flag + ": "));
  }
}

}  // namespace
}  // namespace tactus::agent
