#include "client/local/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/local/support_bundle.h"
#include "client/text/text.h"
#include "protocol/node_labels.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostFacts GoodHost() {
  return {.cores = 8,
          .memory_bytes = std::uint64_t{16} << 30,
          .state_folder = "/home/you",
          .state_writable = true,
          .disk_free_bytes = std::uint64_t{100} << 30,
          .files_max = 524288,
          .unified_cgroups = true,
          .landlock = 6,
          .system_call_filters = true};
}

// "bad disk: ..." of each finding that is not well.
std::vector<std::string> Complaints(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings) {
    if (finding.grade == Grade::kOk) continue;
    lines.push_back((finding.grade == Grade::kBad ? "bad " : "look ") + finding.subject + ": " +
                    finding.found);
    EXPECT_FALSE(finding.advice.empty() && finding.grade == Grade::kBad) << finding.found;
  }
  return lines;
}

TEST(DoctorTest, AGoodHostHasNoComplaint) {
  EXPECT_THAT(Complaints(JudgeHost(GoodHost())), ElementsAre());
  EXPECT_EQ(FormatFindings(JudgeHost(GoodHost())),
            "ok  programs    coordinator, agent and worker are here\n"
            "ok  memory      8 cores, 16.0 GiB free\n"
            "ok  disk        100.0 GiB free in /home/you\n"
            "ok  open files  at most 524,288 a process\n"
            "ok  gpus        none: workers compute on processors\n"
            "ok  cgroups     version 2\n"
            "ok  sandbox     Landlock 6, seccomp\n");
}

TEST(DoctorTest, EachLackOfAHostIsALine) {
  HostFacts facts = GoodHost();
  facts.missing_programs = {"tactus-agent", "tactus-worker"};
  facts.memory_bytes = 500 << 20;
  facts.disk_free_bytes = 1 << 30;
  facts.files_max = 1024;
  facts.unified_cgroups = false;
  facts.landlock = 0;
  EXPECT_THAT(
      Complaints(JudgeHost(facts)),
      ElementsAre("look programs: tactus-agent, tactus-worker not found beside this one",
                  "look memory: 8 cores, 500.0 MiB free", "look disk: 1.0 GiB free in /home/you",
                  "look open files: at most 1,024 a process",
                  "look cgroups: version 2 is not at /sys/fs/cgroup",
                  "look sandbox: no Landlock, seccomp"));
}

TEST(DoctorTest, AStateFolderThatCannotBeWrittenIsBad) {
  HostFacts facts = GoodHost();
  facts.state_writable = false;
  EXPECT_THAT(Complaints(JudgeHost(facts)), ElementsAre("bad disk: /home/you cannot be written"));
}

TEST(DoctorTest, GpusNeedTheirDriverAndRights) {
  HostFacts facts = GoodHost();
  facts.gpu_devices = 2;
  EXPECT_THAT(Complaints(JudgeHost(facts)),
              ElementsAre("bad gpus: 2 GPUs in /dev, but the driver is not loaded"));
  facts.gpu_driver = true;
  EXPECT_THAT(Complaints(JudgeHost(facts)), ElementsAre());
  facts.gpu_readable = false;
  EXPECT_THAT(Complaints(JudgeHost(facts)),
              ElementsAre("bad gpus: 2 GPUs, not all of which this user may use"));
}

TEST(DoctorTest, ThisMachineIsLookedAt) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.File("bin"));
  std::filesystem::create_directories(folder.File("libexec/tactus"));
  for (const char* name : {"bin/tactus-agent", "libexec/tactus/tactus-worker"}) {
    std::ofstream(folder.File(name)) << "#!/bin/sh\n";
    std::filesystem::permissions(folder.File(name), std::filesystem::perms::owner_all);
  }

  const HostFacts facts =
      LookAtHost({.folders = {.state = folder.File("state/not/there"), .config = ""},
                  .binary_folder = folder.File("bin")});

  EXPECT_THAT(facts.missing_programs, ElementsAre("tactus-coordinator"));
  EXPECT_EQ(facts.state_folder, folder.path());
  EXPECT_TRUE(facts.state_writable);
  EXPECT_GT(facts.disk_free_bytes, 0u);
  EXPECT_GT(facts.memory_bytes, 0u);
  EXPECT_GT(facts.files_max, 0u);
}

class DoctorNodesTest : public ::testing::Test {
 protected:
  v1::Node& Add(const std::string& name) {
    v1::Node& node = *nodes_.add_nodes();
    node.set_name("nodes/" + name);
    node.set_connected(true);
    node.set_agent_version("0.1.0");
    node.mutable_last_seen_time()->set_seconds(1000);
    node.add_devices()->set_name("cuda:0");
    return node;
  }
  std::vector<std::string> Complain() { return Complaints(JudgeNodes(facts_, nodes_)); }

  CoordinatorFacts facts_ = {.server = {.value = "lab:7070", .source = "flag --server"},
                             .answer_seconds = 0.0031,
                             .wall_seconds = 1004,
                             .version = "0.1.0"};
  v1::ListNodesResponse nodes_;
};

TEST_F(DoctorNodesTest, AFleetThatIsWellIsThreeLines) {
  Add("n0");
  Add("n1");
  EXPECT_EQ(FormatFindings(JudgeNodes(facts_, nodes_)),
            "ok  coordinator  lab:7070 (flag --server) answered within 4 ms\n"
            "ok  clocks       this one agrees with the coordinator's\n"
            "ok  nodes        2 nodes, all well and of version 0.1.0\n");
}

TEST_F(DoctorNodesTest, EachLackOfANodeIsALine) {
  Add("gone").set_connected(false);
  Add("old").set_agent_version("0.0.9");
  Add("kept").set_cordoned(true);
  Add("ending").set_leaving("SIGTERM");
  Add("broken").mutable_devices(0)->set_fault("XID 79");
  Add("bare").clear_devices();
  EXPECT_THAT(Complain(), ElementsAre("bad node gone: its agent is not heard",
                                      "look node old: its agent is of version 0.0.9",
                                      "look node kept: it is cordoned",
                                      "look node ending: its agent is about to end: SIGTERM",
                                      "bad node broken: cuda:0 is at fault: XID 79",
                                      "bad node bare: it offers no device"));
}

TEST_F(DoctorNodesTest, ABoxThatIsOpenIsTold) {
  const auto add = [this](const std::string& name, const std::string& label) {
    (*Add(name).mutable_labels())[protocol::kSandboxLabel] = label;
  };
  add("whole", "full");
  add("usual", "lacks memory tasks user");
  add("old", "lacks files ports");
  add("unfiltered", "lacks calls");
  add("open", "off");
  EXPECT_THAT(Complain(), ElementsAre("look node old: its workers' box: lacks files ports",
                                      "look node unfiltered: its workers' box: lacks calls",
                                      "look node open: its workers' box: off"));
}

TEST_F(DoctorNodesTest, ClocksThatAreApartAreTold) {
  Add("n0");
  facts_.wall_seconds = 1090;
  EXPECT_THAT(Complain(),
              ElementsAre("look clocks: this one is ahead of the coordinator's by about 1m 30s"));
  facts_.wall_seconds = 880;
  EXPECT_THAT(Complain(),
              ElementsAre("look clocks: this one is behind the coordinator's by about 2m 00s"));
}

TEST_F(DoctorNodesTest, ACoordinatorThatDoesNotAnswerIsBadWhereItWasNamed) {
  const auto nobody = absl::UnavailableError("nobody answers");
  EXPECT_THAT(Complaints(JudgeNodes(facts_, nobody)),
              ElementsAre("bad coordinator: lab:7070 (flag --server): nobody answers"));
  facts_.server.source = "default";
  EXPECT_THAT(Complaints(JudgeNodes(facts_, nobody)),
              ElementsAre("look coordinator: lab:7070 (default): nobody answers"));
}

TEST(DoctorTlsTest, PlainIsWellWhereNobodyElseReaches) {
  EXPECT_THAT(Complaints({JudgeTls({})}), ElementsAre());
  EXPECT_THAT(Complaints({JudgeTls({.exposed = true})}),
              ElementsAre("look tls: none, to an address that others reach"));
}

TEST(DoctorTlsTest, ACertificateIsLookedAtBeforeItRunsOut) {
  TlsFacts facts = {.folder = {.value = "tls", .source = "flag --tls-dir"}, .now = 1000};
  facts.certificate = identity::Certificate{
      .holder = {.domain = "tactus", .kind = identity::Kind::kUser, .name = "alice"},
      .end = 1000 + 6 * 86400};
  EXPECT_EQ(FormatFindings({JudgeTls(facts)}), "ok  tls  spiffe://tactus/user/alice for 6d 00h\n");
  facts.now += 5 * 86400;
  EXPECT_THAT(Complaints({JudgeTls(facts)}),
              ElementsAre("look tls: spiffe://tactus/user/alice for 1d 00h"));
}

TEST(DoctorTlsTest, AFolderThatIsNoneIsBad) {
  const TemporaryFolder folder;
  const TlsFacts facts =
      LookAtTls({.server = {.value = "lab:7070"}, .tls_dir = {folder.path(), "flag --tls-dir"}});
  EXPECT_TRUE(facts.exposed);
  EXPECT_THAT(Complaints({JudgeTls(facts)}),
              ElementsAre("bad tls: " + folder.path() + " (flag --tls-dir): " + folder.path() +
                          "/ca.pem cannot be read"));
}

TEST(SupportBundleTest, SecretsAreLeftOut) {
  const TemporaryFolder folder;
  BundleContent content = {.version = "0.1.0", .findings = "ok\n", .settings = "server lab\n"};
  content.nodes = absl::UnavailableError("nobody answers");
  v1::Job& job = *content.jobs->add_jobs();
  job.set_name("jobs/one");
  for (const char* word : {"python3", "train.py", "--token=hunter2"}) {
    job.mutable_spec()->mutable_program()->add_command(word);
  }
  (*job.mutable_labels())["contact"] = "somebody";

  const auto paths = WriteSupportBundle(folder.File("bundle"), content);

  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->size(), 5u);
  std::string all;
  for (const std::string& path : *paths) {
    std::ifstream in(path);
    ASSERT_TRUE(in.is_open()) << path;
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_THAT(all, HasSubstr("jobs/one"));
  EXPECT_THAT(all, HasSubstr("python3"));
  EXPECT_THAT(all, HasSubstr("nobody answers"));
  EXPECT_THAT(all, HasSubstr("/etc/os-release"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("somebody")));
  EXPECT_THAT(WriteSupportBundle(folder.File("bundle"), content).status().message(),
              HasSubstr("allowed is a folder that is new or empty"));
}

TEST_F(DoctorNodesTest, AFleetWithoutNodesIsBad) {
  EXPECT_THAT(Complain(), ElementsAre("bad nodes: no agent has come"));
}

}  // namespace
}  // namespace tactus::client
