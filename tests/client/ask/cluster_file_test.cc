#include "client/ask/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "client/ask/cluster_writer.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using simulator::Fault;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kWhole = R"(hosts:
  - name: big
    count: 2
    group: left
    link: {rate: 1gbit, latency: 0.1ms, burst: 128KiB}
    devices:
      - {name: cuda:0, count: 2, samples_per_second: 400, batch_time: 2.5ms, samples_max: 512}
  - name: small
    group: right
    devices:
      - sample_time: 5ms
        noise: {sigma: 0.1, slow_factor: 3, slow_mean: 2s, fast_mean: 30s}
        drift_per_hour: 0.05
      - {samples_per_second: 100}
between:
  - {groups: [left, right], rate: 100mbit, latency: 2ms}
local: {rate: 2GB/s, latency: 5us}
collective: recursive_halving
control: {delay: 1ms, jitter: 2ms, duplicate_share: 0.25, persist_time: 3ms}
model: {parameters: 268650, backward_share: 0.5, load_time: 2s, conclude_time: 3s, train_samples: 70}
loss: {noisy_quadratic: {dimension: 32, segments: 2, condition: 10, initial_loss: 4, loss_floor: 1}}
faults:
  - {at: 30s, crash: small/cpu:1}
  - {at: 31s, pause: big-2/cuda:1, for: 10s}
  - {at: 32s, slow: small/cpu:0, factor: 3, for: 20s}
  - {at: 33s, crash_agent: small, for: 5s}
  - {at: 34s, partition: [small, coordinator], one_way: true, for: 5s}
  - {at: 35s, crash_coordinator: true, for: 3s}
  - {at: 36s, disk_full: true}
)";

constexpr const char* kFourMistakes = R"(hosts:
  - {name: a, count: 0,
    link: {rate: 0bit},
    devices: [{sample_time: -1ms}]}
colective: mesh
)";

ClusterFile Parse(const std::string& text) { return ParseClusterFile(text, "", "clusters"); }

TEST(ClusterFileTest, ReadsHostsDevicesAndLinks) {
  const ClusterFile file = Parse(kWhole);

  ASSERT_THAT(file.errors, IsEmpty());
  ASSERT_THAT(file.cluster.hosts, SizeIs(3));
  const simulator::HostModel& big = file.cluster.hosts[1];
  EXPECT_EQ(file.cluster.hosts[0].name, "big-1");
  EXPECT_EQ(big.name, "big-2");
  EXPECT_EQ(big.group, "left");
  EXPECT_EQ(big.link,
            (simulator::LinkModel{
                .latency_seconds = 1e-4, .bytes_per_second = 125e6, .burst_bytes = 131072}));
  ASSERT_THAT(big.devices, SizeIs(2));
  EXPECT_EQ(big.devices[0].name, "cuda:0");
  EXPECT_EQ(big.devices[1], (simulator::DeviceModel{.name = "cuda:1",
                                                    .batch_seconds = 2.5e-3,
                                                    .sample_seconds = 2.5e-3,
                                                    .samples_max = 512}));
  const simulator::HostModel& small = file.cluster.hosts[2];
  EXPECT_EQ(small.link, simulator::LinkModel());
  ASSERT_THAT(small.devices, SizeIs(2));
  EXPECT_EQ(small.devices[0].sample_seconds, 5e-3);
  EXPECT_EQ(small.devices[0].drift_per_hour, 0.05);
  EXPECT_EQ(small.devices[0].noise,
            (simulator::NoiseModel{
                .log_sigma = 0.1, .slow_factor = 3, .slow_seconds = 2, .fast_seconds = 30}));
  EXPECT_EQ(small.devices[1].name, "cpu:1");
  EXPECT_EQ(file.cluster.between[0].b, "right");
  EXPECT_EQ(file.cluster.between[0].link.bytes_per_second, 12.5e6);
  EXPECT_EQ(file.cluster.local.bytes_per_second, 2e9);
  EXPECT_EQ(file.cluster.algorithm, simulator::Algorithm::kRecursiveHalving);
}

TEST(ClusterFileTest, ReadsControlModelAndLoss) {
  const ClusterFile file = Parse(kWhole);

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.cluster.control.delay_seconds, 1e-3);
  EXPECT_EQ(file.cluster.control.jitter_seconds, 2e-3);
  EXPECT_EQ(file.cluster.control.duplicate_share, 0.25);
  EXPECT_EQ(file.cluster.control.persist_seconds, 3e-3);
  EXPECT_EQ(file.work.model.parameters(), 268650u);
  EXPECT_EQ(file.work.model.backward_share(), 0.5);
  EXPECT_EQ(file.work.model.load_time().seconds(), 2);
  EXPECT_EQ(file.work.model.conclude_time().seconds(), 3);
  EXPECT_EQ(file.work.model.train_samples(), 70u);
  const sim::v1::NoisyQuadratic& loss = file.work.loss.noisy_quadratic();
  EXPECT_EQ(loss.dimension(), 32u);
  EXPECT_EQ(loss.segments(), 2u);
  EXPECT_EQ(loss.condition(), 10);
  EXPECT_EQ(loss.initial_loss(), 4);
  EXPECT_EQ(loss.loss_floor(), 1);
}

TEST(ClusterFileTest, ReadsEveryKindOfFault) {
  const ClusterFile file = Parse(kWhole);

  ASSERT_THAT(file.cluster.faults, SizeIs(7));
  const std::vector<Fault>& faults = file.cluster.faults;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_EQ(faults[i].kind, static_cast<Fault::Kind>(i));
    EXPECT_EQ(faults[i].at_seconds, 30 + static_cast<double>(i));
  }
  EXPECT_EQ(faults[0].host + " " + faults[0].device, "small cpu:1");
  EXPECT_EQ(faults[1].host + " " + faults[1].device, "big-2 cuda:1");
  EXPECT_EQ(faults[1].for_seconds, 10);
  EXPECT_EQ(faults[2].factor, 3);
  EXPECT_EQ(faults[3].host, "small");
  EXPECT_EQ(faults[4].host + " " + faults[4].peer, "small coordinator");
  EXPECT_TRUE(faults[4].one_way);
  EXPECT_EQ(faults[6].for_seconds, 0);
}

TEST(ClusterFileTest, AHostAndADeviceAreEnough) {
  const ClusterFile file = Parse("hosts: [{name: a, devices: [{samples_per_second: 10}]}]");

  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.cluster.hosts[0].devices[0].name, "cpu:0");
  EXPECT_EQ(file.cluster.algorithm, simulator::Algorithm::kMesh);
  EXPECT_EQ(file.work.model.train_samples(), 50000u);
  EXPECT_TRUE(file.work.loss.has_noisy_quadratic());
}

TEST(ClusterFileTest, DefaultsAreThoseOfTheModels) {
  const ClusterFile file = Parse(
      "hosts: [{name: a, group: g, devices: [{sample_time: 1ms}]}, {name: b, group: h, devices: "
      "[{sample_time: 1ms}]}]\nbetween: [{groups: [g, h], rate: 1gbit}]\n");

  ASSERT_THAT(file.errors, IsEmpty());
  const simulator::ClusterModel& cluster = file.cluster;
  EXPECT_EQ(cluster.hosts[0].link, simulator::LinkModel());
  EXPECT_EQ(cluster.hosts[0].devices[0], simulator::DeviceModel{.name = "cpu:0"});
  EXPECT_EQ(cluster.between[0].link, simulator::LinkModel{.bytes_per_second = 125e6});
  EXPECT_EQ(WriteClusterFile({.hosts = cluster.hosts, .between = cluster.between}, {}),
            WriteClusterFile(cluster, {}));
}

TEST(ClusterFileTest, DevicesWithoutANameCountOnFromThoseBefore) {
  const std::string text =
      "hosts: [{name: a, devices: [{name: cpu:3, count: 2, sample_time: 1ms}, {sample_time: 2ms}, "
      "{name: cuda:0, sample_time: 3ms}, {sample_time: 4ms}]}]";

  const ClusterFile file = Parse(text);

  ASSERT_THAT(file.errors, IsEmpty());
  std::vector<std::string> names;
  for (const auto& device : file.cluster.hosts[0].devices) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre("cpu:3", "cpu:4", "cpu:5", "cuda:0", "cpu:6"));
}

TEST(ClusterFileTest, PerceptronsAndCurvesAreLossModels) {
  const std::string hosts = "hosts: [{name: a, devices: [{sample_time: 1ms}]}]\n";
  const std::string synthetic =
      "{samples: 100, features: 3, classes: 5, separation: 2, seed: 9, validation_samples: 10}";

  const ClusterFile perceptron =
      Parse(hosts + "loss: {perceptron: {hidden: [8, 4], synthetic: " + synthetic + "}}");
  const ClusterFile curve = Parse(hosts + "loss: {curve: {file: run/curve.csv, noise: true}}");
  const ClusterFile named = Parse(hosts + "loss: perceptron");

  ASSERT_THAT(perceptron.errors, IsEmpty());
  const sim::v1::Perceptron& loss = perceptron.work.loss.perceptron();
  EXPECT_THAT(loss.hidden(), ElementsAre(8, 4));
  EXPECT_EQ(loss.synthetic().samples(), 100u);
  EXPECT_EQ(loss.synthetic().features(), 3u);
  EXPECT_EQ(loss.synthetic().classes(), 5u);
  EXPECT_EQ(loss.synthetic().separation(), 2);
  EXPECT_EQ(loss.synthetic().seed(), 9u);
  EXPECT_EQ(loss.synthetic().validation_samples(), 10u);
  ASSERT_THAT(curve.errors, IsEmpty());
  EXPECT_EQ(curve.work.loss.curve().file(), "clusters/run/curve.csv");
  EXPECT_TRUE(curve.work.loss.curve().noise());
  ASSERT_THAT(named.errors, IsEmpty());
  EXPECT_FALSE(named.work.loss.perceptron().has_synthetic());
  EXPECT_THAT(named.work.loss.perceptron().hidden(), ElementsAre(64));
}

TEST(ClusterFileTest, TheCommandLinesLossReplacesTheFiles) {
  const ClusterFile named = ParseClusterFile(kWhole, "perceptron", "");
  const ClusterFile mapped = ParseClusterFile(kWhole, "{curve: {file: c.csv}}", "");
  const ClusterFile unknown = ParseClusterFile(kWhole, "curv", "");
  const ClusterFile broken = ParseClusterFile(kWhole, "{curve", "");

  EXPECT_TRUE(named.work.loss.has_perceptron());
  EXPECT_EQ(mapped.work.loss.curve().file(), "c.csv");
  EXPECT_THAT(unknown.errors,
              ElementsAre(StartsWith("loss: 'curv' stands where a map is expected; ")));
  EXPECT_THAT(broken.errors[0], StartsWith("--loss: line 1, column "));
}

TEST(ClusterFileTest, AllMistakesAreReportedAtOnce) {
  const ClusterFile file = Parse(kFourMistakes);

  const std::vector<std::string> expected = {
      "hosts[0].link.rate: '0bit' is not a rate of 1kbit or more, such as 100mbit or 1gbit (line "
      "3)",
      "hosts[0].devices[0].sample_time: '-1ms' is negative (line 4); allowed: durations of 0 or "
      "more, such as 90s, 30m or 1h30m",
      "colective: unknown key (line 5); did you mean 'collective'? allowed: hosts, between, local, "
      "collective, control, model, loss, faults",
      "hosts[0].count: found 0, allowed is 1 to 65536 (line 2)"};
  EXPECT_EQ(file.errors, expected);
}

TEST(ClusterFileTest, AFileThatCannotBeReadSaysWhy) {
  const TemporaryFolder folder;

  const ClusterFile of_folder = ReadClusterFile(folder.path(), "");
  const ClusterFile missing = ReadClusterFile(folder.path() + "/none.yaml", "");

  EXPECT_THAT(of_folder.errors, ElementsAre("a folder; expected a cluster file"));
  EXPECT_THAT(missing.errors, ElementsAre("No such file or directory"));
}

TEST(ClusterFileTest, TheExampleIsRight) {
  const char* source = std::getenv("TACTUS_SOURCE");
  ASSERT_NE(source, nullptr);

  const ClusterFile file = ReadClusterFile(std::string(source) + "/examples/cluster.yaml", "");

  EXPECT_THAT(file.errors, IsEmpty());
  EXPECT_THAT(file.cluster.hosts, SizeIs(4));
}

// ---- One mistake each.

struct Mistake {
  std::string name;
  std::string text;
  std::string error;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

// Hosts a and b (group g) in the first two lines.
constexpr const char* kHosts =
    "hosts:\n- {name: a, devices: [{sample_time: 1ms}]}\n- {name: b, group: g, devices: "
    "[{sample_time: 1ms}]}\n";

std::string Host(const std::string& keys) { return "hosts:\n- {name: a, " + keys + "}\n"; }
std::string Device(const std::string& keys) { return Host("devices: [{" + keys + "}]"); }
std::string FaultOf(const std::string& keys) {
  return std::string(kHosts) + "faults:\n- {" + keys + "}\n";
}
std::string With(const std::string& keys) { return kHosts + keys + "\n"; }

class ClusterMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(ClusterMistakeTest, IsOneLineWithPlaceAndWhatIsAllowed) {
  EXPECT_THAT(Parse(GetParam().text).errors, ElementsAre(GetParam().error));
}

std::string NameOf(const testing::TestParamInfo<Mistake>& info) { return info.param.name; }

const std::vector<Mistake> kHostMistakes = {
    {"Empty", "# nothing\n", "the file is empty; a cluster has at least hosts"},
    {"NotYaml", "a: [", "line 1, column 1: end of sequence flow not found"},
    {"List", "- a\n",
     "a list stands where a map is expected (line 1); allowed keys: hosts, between, local, "
     "collective, control, model, loss, faults"},
    {"NoHosts", "collective: ring\n", "hosts: found 0 items, allowed are 1 or more (line 1)"},
    {"EmptyHosts", "hosts: []\n", "hosts: found 0 items, allowed are 1 or more (line 1)"},
    {"HostsAreNoList", "hosts: a\n",
     "hosts: 'a' stands where a list is expected (line 1); expected a list of maps of: name, "
     "count, "
     "group, link, devices"},
    {"HostIsNoMap", "hosts: [a]\n",
     "hosts[0]: 'a' stands where a map is expected (line 1); allowed keys: name, count, group, "
     "link, devices"},
    {"HostsGivenTwice", std::string(kHosts) + kHosts,
     "hosts: given twice (line 4); first on line 1"},
    {"NoName", "hosts: [{devices: [{sample_time: 1ms}]}]",
     "hosts[0].name: is missing; give a name of 1 to 63 letters, digits, '.', '_' and '-' (line "
     "1)"},
    {"NameWithSlash", "hosts: [{name: a/b, devices: [{sample_time: 1ms}]}]",
     "hosts[0].name: found \"a/b\", allowed is a name of 1 to 63 letters, digits, '.', '_' and "
     "'-' (line 1)"},
    {"NameOfTheCoordinator", "hosts: [{name: coordinator, devices: [{sample_time: 1ms}]}]",
     "hosts[0].name: found \"coordinator\", allowed is any name but coordinator (line 1)"},
    {"SameName",
     "hosts:\n- {name: a, devices: [{sample_time: 1ms}]}\n- {name: a, devices: [{sample_time: "
     "1ms}]}\n",
     "hosts[1].name: there is a second host a (line 3)"},
    {"SameNameByCount",
     "hosts:\n- {name: a-2, devices: [{sample_time: 1ms}]}\n- {name: a, count: 2, devices: "
     "[{sample_time: 1ms}]}\n",
     "hosts[1].name: there is a second host a-2 (line 3)"},
    {"NoCount", Host("count: 0, devices: [{sample_time: 1ms}]"),
     "hosts[0].count: found 0, allowed is 1 to 65536 (line 2)"},
    {"TooMany", Host("count: 40000, devices: [{count: 2, sample_time: 1ms}]"),
     "hosts[0]: found 80000 devices up to here, allowed are 65536 (line 2)"},
    {"NegativeRate", Host("link: {rate: -5mbit}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.rate: '-5mbit' is not a rate of 1kbit or more, such as 100mbit or 1gbit (line "
     "2)"},
    {"RateWithoutUnit", Host("link: {rate: 100}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.rate: '100' is not a rate of 1kbit or more, such as 100mbit or 1gbit (line 2)"},
    {"RateIsAList", Host("link: {rate: [1gbit]}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.rate: a list stands where a single value is expected (line 2); expected a rate "
     "of 1kbit or more, such as 100mbit or 1gbit"},
    {"LatencyWithoutUnit", Host("link: {latency: 5}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.latency: '5' is not a duration (line 2); write a number with its unit, such as "
     "90s, 30m, 1h30m or 500ms"},
    {"LatencyTooLong", Host("link: {latency: 2h}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.latency: found 7200s, allowed is 0 to 1h (line 2)"},
    {"BurstWithoutUnit", Host("link: {burst: 5}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.burst: '5' is not a size such as 128KiB or 1MiB (line 2)"},
    {"LinkIsText", Host("link: 1gbit, devices: [{sample_time: 1ms}]"),
     "hosts[0].link: '1gbit' stands where a map is expected (line 2); allowed keys: rate, latency, "
     "burst"},
    {"UnknownKey", Host("link: {rte: 1gbit}, devices: [{sample_time: 1ms}]"),
     "hosts[0].link.rte: unknown key (line 2); did you mean 'rate'? allowed: rate, latency, burst"},
};

const std::vector<Mistake> kDeviceMistakes = {
    {"NoDevices", "hosts:\n- name: a\n",
     "hosts[0].devices: found 0 items, allowed are 1 or more (line 2)"},
    {"EmptyDevices", Host("devices: []"),
     "hosts[0].devices: found 0 items, allowed are 1 or more (line 2)"},
    {"NoSpeed", Device("batch_time: 1ms"),
     "hosts[0].devices[0]: give samples_per_second or sample_time (line 2)"},
    {"TwoSpeeds", Device("samples_per_second: 1, sample_time: 1s"),
     "hosts[0].devices[0]: found both samples_per_second and sample_time, allowed is one of them "
     "(line 2)"},
    {"SpeedZero", Device("samples_per_second: 0"),
     "hosts[0].devices[0].samples_per_second: found 0, allowed is 0.001 to 1e9 (line 2)"},
    {"SpeedIsText", Device("samples_per_second: fast"),
     "hosts[0].devices[0].samples_per_second: 'fast' is not a finite number (line 2)"},
    {"UnknownKind", Device("name: gpu:0, sample_time: 1ms"),
     "hosts[0].devices[0].name: found \"gpu:0\", allowed is cpu:N or cuda:N, N being 0 to 65535 "
     "(line 2)"},
    {"NameWithoutNumber", Device("name: 'cpu:', sample_time: 1ms"),
     "hosts[0].devices[0].name: found \"cpu:\", allowed is cpu:N or cuda:N, N being 0 to 65535 "
     "(line 2)"},
    {"SameDevice", Host("devices: [{count: 2, sample_time: 1ms}, {name: cpu:1, sample_time: 1s}]"),
     "hosts[0].devices[1].name: there is a second cpu:1 on this host (line 2)"},
    {"Sigma", Device("sample_time: 1ms, noise: {sigma: 3}"),
     "hosts[0].devices[0].noise.sigma: found 3, allowed is 0 to 2 (line 2)"},
    {"PhasesTooShort",
     Device("sample_time: 1ms, noise: {slow_factor: 2, slow_mean: 999us, fast_mean: 1ms}"),
     "hosts[0].devices[0].noise.slow_mean: found 0.000999s, allowed is 1ms to 365d (line 2)"},
    {"SlowFactorAlone", Device("sample_time: 1ms, noise: {slow_factor: 2, slow_mean: 1s}"),
     "hosts[0].devices[0].noise.fast_mean: is missing; give a duration, as slow_factor is above 1 "
     "(line 2)"},
    {"Drift", Device("sample_time: 1ms, drift_per_hour: 1000"),
     "hosts[0].devices[0].drift_per_hour: found 1000, allowed is -100 to 100 (line 2)"},
    {"SamplesMax", Device("sample_time: 1ms, samples_max: 1.5"),
     "hosts[0].devices[0].samples_max: '1.5' is not a whole number (line 2)"},
};

const std::vector<Mistake> kOtherMistakes = {
    {"BetweenWithoutRate",
     "hosts: [{name: a, group: g, devices: [{sample_time: 1ms}]}, {name: b, group: h, devices: "
     "[{sample_time: 1ms}]}]\nbetween: [{groups: [g, h]}]\n",
     "between[0].rate: is missing; give a rate, such as 1gbit (line 2)"},
    {"BetweenUnknownGroup", With("between: [{groups: [g, x], rate: 1gbit}]"),
     "between[0].groups: found \"x\", allowed is g (line 4)"},
    {"BetweenOneGroup", With("between: [{groups: [g], rate: 1gbit}]"),
     "between[0].groups: give a list of two groups of hosts (line 4)"},
    {"UnknownCollective", With("collective: star"),
     "collective: 'star' is unknown (line 4); allowed: mesh, ring, recursive_halving, tree"},
    {"DuplicateShare", With("control: {duplicate_share: 1}"),
     "control.duplicate_share: found 1, allowed is 0 to below 1 (line 4)"},
    {"NegativeDelay", With("control: {delay: -1ms}"),
     "control.delay: '-1ms' is negative (line 4); allowed: durations of 0 or more, such as 90s, "
     "30m or 1h30m"},
    {"Parameters", With("model: {parameters: 0}"),
     "model.parameters: found 0, allowed is 1 to 1000000000000 (line 4)"},
    {"BackwardShare", With("model: {backward_share: 1.5}"),
     "model.backward_share: found 1.5, allowed is 0 to 1 (line 4)"},
    {"UnknownLossByName", With("loss: resnet"),
     "loss: 'resnet' stands where a map is expected (line 4); allowed keys: noisy_quadratic, "
     "perceptron, curve"},
    {"CurveByName", With("loss: curve"),
     "loss.curve.file: is missing; give the path of a CSV file with the columns samples and loss "
     "(line 4)"},
    {"LossIsNothing", With("loss:\nlocal: {rate: 1gbit}"),
     "loss: no value is given (line 4); expected a map of: noisy_quadratic, perceptron, curve"},
    {"UnknownLoss", With("loss: {resnet: {}}"),
     "loss.resnet: unknown key (line 4); allowed: noisy_quadratic, perceptron, curve"},
    {"TwoLosses", With("loss: {noisy_quadratic: {}, perceptron: {}}"),
     "loss: both 'noisy_quadratic' and 'perceptron' are given (line 4); allowed: one of them"},
    {"FloorAboveStart", With("loss: {noisy_quadratic: {loss_floor: 3}}"),
     "loss.noisy_quadratic.loss_floor: found 3, allowed is a loss_floor of at most "
     "initial_loss "
     "(line 4)"},
    {"MoreSegmentsThanDimensions", With("loss: {noisy_quadratic: {dimension: 2, segments: 3}}"),
     "loss.noisy_quadratic.segments: found 3, allowed is 1 to 2 (line 4)"},
    {"HiddenWidth", With("loss: {perceptron: {hidden: [0]}}"),
     "loss.perceptron.hidden[0]: found 0, allowed is 1 to 65536 (line 4)"},
    {"HiddenLayers",
     With("loss: {perceptron: {hidden: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}}"),
     "loss.perceptron.hidden: found 17 items, allowed are 0 to 16 (line 4)"},
    {"HiddenAndLinear", With("loss: {perceptron: {hidden: [8], linear: true}}"),
     "loss.perceptron.linear: has no hidden layers (line 4)"},
    {"TooMuchData",
     With("loss: {perceptron: {synthetic: {samples: 1000000, features: 1000, "
          "validation_samples: 0}}}"),
     "loss.perceptron.synthetic: found 1000000 samples of 1000 features, allowed are 268435456 "
     "values in all (line 4)"},
    {"CurveWithoutFile", With("loss: {curve: {}}"),
     "loss.curve.file: is missing; give the path of a CSV file with the columns samples and loss "
     "(line 4)"},
    {"CurveWithEmptyFile", With("loss: {curve: {file: ''}}"),
     "loss.curve.file: is missing; give the path of a CSV file with the columns samples and loss "
     "(line 4)"},
};

const std::vector<Mistake> kFaultMistakes = {
    {"FaultsAreAMap", With("faults: {at: 1s}"),
     "faults: a map stands where a list is expected (line 4); expected a list of maps of: at, "
     "crash, "
     "pause, slow, crash_agent, partition, crash_coordinator, disk_full, wrong_store, factor, "
     "one_way, for"},
    {"NoTime", FaultOf("crash: a/cpu:0"),
     "faults[0].at: is missing; give when it happens, such as 30s (line 5)"},
    {"NoFault", FaultOf("at: 1s"),
     "faults[0]: found 0 faults, allowed is one of crash, pause, slow, crash_agent, partition, "
     "crash_coordinator, disk_full, wrong_store (line 5)"},
    {"TwoFaults", FaultOf("at: 1s, crash: a/cpu:0, disk_full: true"),
     "faults[0]: found 2 faults, allowed is one of crash, pause, slow, crash_agent, partition, "
     "crash_coordinator, disk_full, wrong_store (line 5)"},
    {"UnknownHost", FaultOf("at: 1s, crash: c/cpu:0"),
     "faults[0].crash: found \"c/cpu:0\", allowed is HOST/DEVICE of this cluster, such as a/cpu:0 "
     "(line 5)"},
    {"UnknownDevice", FaultOf("at: 1s, pause: a/cpu:1"),
     "faults[0].pause: found \"a/cpu:1\", allowed is HOST/DEVICE of this cluster, such as a/cpu:0 "
     "(line 5)"},
    {"HostWithoutDevice", FaultOf("at: 1s, crash: a"),
     "faults[0].crash: found \"a\", allowed is HOST/DEVICE of this cluster, such as a/cpu:0 (line "
     "5)"},
    {"UnknownAgent", FaultOf("at: 1s, crash_agent: c"),
     "faults[0].crash_agent: found \"c\", allowed is the name of a host (line 5)"},
    {"SlowWithoutFactor", FaultOf("at: 1s, slow: a/cpu:0"),
     "faults[0].factor: is missing; give how many times as long it takes (line 5)"},
    {"Faster", FaultOf("at: 1s, slow: a/cpu:0, factor: 0.5"),
     "faults[0].factor: found 0.5, allowed is 1 to 1e6 (line 5)"},
    {"PartitionOfOne", FaultOf("at: 1s, partition: [a]"),
     "faults[0].partition: allowed is [HOST, HOST] or [HOST, coordinator] of this cluster (line "
     "5)"},
    {"PartitionFromTheCoordinator", FaultOf("at: 1s, partition: [coordinator, a]"),
     "faults[0].partition: allowed is [HOST, HOST] or [HOST, coordinator] of this cluster (line "
     "5)"},
    {"CrashHasNoEnd", FaultOf("at: 1s, crash: a/cpu:0, for: 2s"),
     "faults[0].for: is not for crash: a worker that crashed stays away (line 5)"},
    {"FactorOfACrash", FaultOf("at: 1s, crash: a/cpu:0, factor: 2"),
     "faults[0].factor: is for slow (line 5)"},
    {"OneWayOfACrash", FaultOf("at: 1s, crash: a/cpu:0, one_way: true"),
     "faults[0].one_way: is for partition (line 5)"},
    {"ForNothing", FaultOf("at: 1s, disk_full: true, for: 0s"),
     "faults[0].for: found 0s, allowed is above 0 to 365d (line 5)"},
    {"NotFull", FaultOf("at: 1s, disk_full: false"),
     "faults[0]: found 0 faults, allowed is one of crash, pause, slow, crash_agent, partition, "
     "crash_coordinator, disk_full, wrong_store (line 5)"},
};

INSTANTIATE_TEST_SUITE_P(Hosts, ClusterMistakeTest, testing::ValuesIn(kHostMistakes), NameOf);
INSTANTIATE_TEST_SUITE_P(Devices, ClusterMistakeTest, testing::ValuesIn(kDeviceMistakes), NameOf);
INSTANTIATE_TEST_SUITE_P(Others, ClusterMistakeTest, testing::ValuesIn(kOtherMistakes), NameOf);
INSTANTIATE_TEST_SUITE_P(Faults, ClusterMistakeTest, testing::ValuesIn(kFaultMistakes), NameOf);

// ---- Written and read again.

TEST(ClusterWriterTest, WhatIsWrittenReadsBackAsTheSame) {
  const ClusterFile file = Parse(kWhole);
  const std::string text = WriteClusterFile(file.cluster, file.work);

  const ClusterFile again = Parse(text);

  ASSERT_THAT(again.errors, IsEmpty()) << text;
  ASSERT_EQ(again.cluster.hosts.size(), file.cluster.hosts.size());
  for (std::size_t i = 0; i < file.cluster.hosts.size(); ++i) {
    EXPECT_EQ(again.cluster.hosts[i].name, file.cluster.hosts[i].name);
    EXPECT_EQ(again.cluster.hosts[i].group, file.cluster.hosts[i].group);
    EXPECT_EQ(again.cluster.hosts[i].link, file.cluster.hosts[i].link);
    EXPECT_EQ(again.cluster.hosts[i].devices, file.cluster.hosts[i].devices);
  }
  EXPECT_EQ(again.cluster.local, file.cluster.local);
  EXPECT_EQ(again.cluster.algorithm, file.cluster.algorithm);
  EXPECT_EQ(again.cluster.control.jitter_seconds, file.cluster.control.jitter_seconds);
  EXPECT_EQ(again.cluster.faults.size(), file.cluster.faults.size());
  EXPECT_EQ(WriteClusterFile(again.cluster, again.work), text);
}

TEST(ClusterWriterTest, EveryLossModelReadsBack) {
  for (const char* loss :
       {"{noisy_quadratic: {condition: 7, loss_noise: 0.5}}", "{perceptron: {hidden: []}}",
        "{perceptron: {synthetic: {separation: 1.5}}}",
        "{curve: {file: /with space/c.csv, noise: true}}"}) {
    const ClusterFile file = ParseClusterFile(kWhole, loss, "clusters");
    const std::string text = WriteClusterFile(file.cluster, file.work);

    const ClusterFile again = Parse(text);

    ASSERT_THAT(again.errors, IsEmpty()) << text;
    EXPECT_EQ(again.work.loss.model_case(), file.work.loss.model_case());
    EXPECT_EQ(WriteClusterFile(again.cluster, again.work), text);
  }
}

}  // namespace
}  // namespace tactus::client
