#include "client/local/doctor.h"

#include <linux/landlock.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>

#include "client/text/text.h"
#include "protocol/node_labels.h"
#include "runtime/host_port.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kDiskLow = 2 * kGiB;
constexpr std::uint64_t kMemoryLow = kGiB;  // some workers with libtorch
constexpr std::uint64_t kFilesLow = 4096;
constexpr double kAnswerSlow = 0.5;              // [s]
constexpr std::int64_t kExpirySoon = 2 * 86400;  // [s]
// An agent is heard every few seconds, so what is older, or later than now, is the clocks' doing.
constexpr double kClockApart = 15;  // [s]

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::vector<std::string> MissingPrograms(const std::string& folder) {
  std::vector<std::string> missing;
  for (const char* name : {"tactus-coordinator", "tactus-agent"}) {
    if (::access((folder + "/" + name).c_str(), X_OK) != 0) missing.emplace_back(name);
  }
  if (::access(runtime::WorkerProgramFor(folder).c_str(), X_OK) != 0) {
    missing.emplace_back("tactus-worker");
  }
  return missing;
}

// MemAvailable of /proc/meminfo, in bytes.
std::uint64_t AvailableMemory() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

void LookAtDisk(const std::string& wanted, HostFacts* facts) {
  std::filesystem::path folder = wanted;
  while (!Exists(folder.string()) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  facts->state_folder = folder.string();
  facts->state_writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) == 0) {
    facts->disk_free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  }
}

void LookAtGpus(HostFacts* facts) {
  for (int i = 0; Exists("/dev/nvidia" + std::to_string(i)); ++i) {
    ++facts->gpu_devices;
    const std::string device = "/dev/nvidia" + std::to_string(i);
    if (::access(device.c_str(), R_OK | W_OK) != 0) facts->gpu_readable = false;
  }
  facts->gpu_driver = Exists("/proc/driver/nvidia/version");
}

// What holds a worker to its job's files and its own calls; the box of an agent has more parts.
Finding JudgeSandbox(const HostFacts& facts) {
  const std::string landlock =
      facts.landlock > 0 ? "Landlock " + std::to_string(facts.landlock) : "no Landlock";
  const std::string filters = facts.system_call_filters ? "seccomp" : "no seccomp";
  const bool whole = facts.landlock > 0 && facts.system_call_filters;
  return {.grade = whole ? Grade::kOk : Grade::kLook,
          .subject = "sandbox",
          .found = landlock + ", " + filters,
          .advice = whole ? ""
                          : "workers here may reach what their user may: Linux 5.13 and later "
                            "has both, and lsm= at its start names landlock"};
}

Finding JudgeGpus(const HostFacts& facts) {
  if (facts.gpu_devices == 0 && !facts.gpu_driver) {
    return {.subject = "gpus", .found = "none: workers compute on processors"};
  }
  const std::string count = CountOf(static_cast<std::uint64_t>(facts.gpu_devices), "GPU");
  if (!facts.gpu_driver || facts.gpu_devices == 0) {
    return {.grade = Grade::kBad,
            .subject = "gpus",
            .found = facts.gpu_driver ? "the driver is loaded and /dev has no GPU"
                                      : count + " in /dev, but the driver is not loaded",
            .advice = "nvidia-smi says more"};
  }
  if (!facts.gpu_readable) {
    return {.grade = Grade::kBad,
            .subject = "gpus",
            .found = count + ", not all of which this user may use",
            .advice = "give the user the group that /dev/nvidia* have"};
  }
  return {.subject = "gpus", .found = count};
}

// Of agents that are there: what is wrong with each.
void JudgeNode(const v1::Node& node, const CoordinatorFacts& facts,
               std::vector<Finding>* findings) {
  const std::string name = Printable(ShortName(node.name()));
  const auto say = [&](Grade grade, const std::string& found, const std::string& advice) {
    findings->push_back(
        {.grade = grade, .subject = "node " + name, .found = found, .advice = advice});
  };
  if (!node.connected()) {
    say(Grade::kBad, "its agent is not heard",
        "start it there, or tactus delete node " + name + " if it was taken away");
    return;
  }
  if (node.agent_version() != facts.version) {
    say(Grade::kLook, "its agent is of version " + Printable(node.agent_version()),
        "this program is of " + facts.version + ": install one on all (docs/operations.md)");
  }
  const auto sandbox = node.labels().find(protocol::kSandboxLabel);
  if (sandbox != node.labels().end()) {
    const std::string lacks = " " + sandbox->second + " ";
    if (lacks == " off " || lacks.find(" files ") != std::string::npos ||
        lacks.find(" calls ") != std::string::npos) {
      say(Grade::kLook, "its workers' box: " + Printable(sandbox->second),
          "jobs there may reach what the agent's user may (docs/operations.md, the box)");
    }
  }
  if (!node.leaving().empty()) {
    say(Grade::kLook, "its agent is about to end: " + Printable(node.leaving()), "");
  } else if (node.cordoned() || node.draining()) {
    say(Grade::kLook, node.draining() ? "it is drained" : "it is cordoned",
        "tactus uncordon " + name + " gives it work again");
  }
  if (node.devices().empty()) say(Grade::kBad, "it offers no device", "see --devices of its agent");
  for (const v1::Device& device : node.devices()) {
    if (device.fault().empty()) continue;
    say(Grade::kBad, device.name() + " is at fault: " + Printable(device.fault()),
        "docs/runbooks/TactusDeviceFault.md");
  }
}

// The newest sign of any agent, by the coordinator's clock, against ours.
Finding JudgeClock(const CoordinatorFacts& facts, const v1::ListNodesResponse& nodes) {
  double newest = 0;
  for (const v1::Node& node : nodes.nodes()) {
    const auto& time = node.last_seen_time();
    const double seen = static_cast<double>(time.seconds()) + time.nanos() * 1e-9;
    if (node.connected()) newest = std::max(newest, seen);
  }
  const double apart = facts.wall_seconds - newest;
  if (newest == 0) return {.subject = "clocks", .found = "no agent is there to tell them by"};
  if (std::abs(apart) <= kClockApart) {
    return {.subject = "clocks", .found = "this one agrees with the coordinator's"};
  }
  return {.grade = Grade::kLook,
          .subject = "clocks",
          .found = "this one is " + std::string(apart > 0 ? "ahead of" : "behind") +
                   " the coordinator's by about " + FormatSpan(Seconds(std::abs(apart))),
          .advice = "training does not mind; for times in logs and results set both (NTP)"};
}

const char* Word(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kLook:
      return "look";
    case Grade::kBad:
      return "bad";
  }
  return "";
}

}  // namespace

HostFacts LookAtHost(const Surroundings& surroundings) {
  HostFacts facts;
  facts.missing_programs = MissingPrograms(surroundings.binary_folder);
  facts.cores = std::max(1u, std::thread::hardware_concurrency());
  facts.memory_bytes = AvailableMemory();
  LookAtDisk(surroundings.folders.state, &facts);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts.files_max = files.rlim_max;
  LookAtGpus(&facts);
  facts.unified_cgroups = Exists("/sys/fs/cgroup/cgroup.controllers");
  const long landlock =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  facts.landlock = landlock > 0 ? static_cast<int>(landlock) : 0;
  facts.system_call_filters = Exists("/proc/sys/kernel/seccomp/actions_avail");
  return facts;
}

std::vector<Finding> JudgeHost(const HostFacts& facts) {
  std::vector<Finding> findings;
  if (facts.missing_programs.empty()) {
    findings.push_back({.subject = "programs", .found = "coordinator, agent and worker are here"});
  } else {
    std::string names;
    for (const std::string& name : facts.missing_programs) {
      names += (names.empty() ? "" : ", ") + name;
    }
    findings.push_back({.grade = Grade::kLook,
                        .subject = "programs",
                        .found = names + " not found beside this one",
                        .advice = "tactus run and demo need them: install the packages of those "
                                  "names"});
  }
  const bool little = facts.memory_bytes > 0 && facts.memory_bytes < kMemoryLow;
  findings.push_back(
      {.grade = little ? Grade::kLook : Grade::kOk,
       .subject = "memory",
       .found = CountOf(facts.cores, "core") + ", " +
                (facts.memory_bytes > 0 ? FormatBytes(facts.memory_bytes) + " free" : "memory?"),
       .advice = little ? "a worker takes some 300 MiB beside its model: start few" : ""});
  const bool full = facts.disk_free_bytes < kDiskLow;
  findings.push_back({.grade = !facts.state_writable ? Grade::kBad
                               : full                ? Grade::kLook
                                                     : Grade::kOk,
                      .subject = "disk",
                      .found = facts.state_writable
                                   ? FormatBytes(facts.disk_free_bytes) + " free in " +
                                         Printable(facts.state_folder)
                                   : Printable(facts.state_folder) + " cannot be written",
                      .advice = !facts.state_writable ? "name another by XDG_STATE_HOME"
                                : full                ? "tactus clean removes what runs left"
                                                      : ""});
  const bool few = facts.files_max < kFilesLow;
  findings.push_back({.grade = few ? Grade::kLook : Grade::kOk,
                      .subject = "open files",
                      .found = "at most " + FormatCount(facts.files_max) + " a process",
                      .advice = few ? "a coordinator needs one for each agent and watcher: raise "
                                      "the hard limit (LimitNOFILE, limits.conf)"
                                    : ""});
  findings.push_back(JudgeGpus(facts));
  findings.push_back(
      {.grade = facts.unified_cgroups ? Grade::kOk : Grade::kLook,
       .subject = "cgroups",
       .found = facts.unified_cgroups ? "version 2" : "version 2 is not at /sys/fs/cgroup",
       .advice = facts.unified_cgroups ? ""
                                       : "that a worker was killed for want of memory is told by "
                                         "the host's count alone"});
  findings.push_back(JudgeSandbox(facts));
  return findings;
}

TlsFacts LookAtTls(const Settings& settings) {
  TlsFacts facts = {.folder = settings.tls_dir, .now = runtime::WallSeconds()};
  const auto server = runtime::ParseHostPort(settings.server.value);
  facts.exposed = server && !runtime::IsLoopback(server->host);
  if (facts.folder.value.empty()) return facts;
  identity::TlsTexts texts;
  for (const auto& [name, text] :
       {std::pair{"/ca.pem", &texts.authority}, std::pair{"/cert.pem", &texts.certificate},
        std::pair{"/key.pem", &texts.key}}) {
    std::ifstream in(facts.folder.value + name, std::ios::binary);
    if (!in) {
      facts.certificate = absl::NotFoundError(facts.folder.value + name + " cannot be read");
      return facts;
    }
    text->assign(std::istreambuf_iterator<char>(in), {});
  }
  facts.certificate = identity::CheckTlsTexts(texts, facts.now);
  return facts;
}

Finding JudgeTls(const TlsFacts& facts) {
  const auto finding = [](Grade grade, const std::string& found, const std::string& advice) {
    return Finding{.grade = grade, .subject = "tls", .found = found, .advice = advice};
  };
  if (facts.folder.value.empty()) {
    return facts.exposed
               ? finding(Grade::kLook, "none, to an address that others reach",
                         "whoever reaches the coordinator may do everything (docs/security.md)")
               : finding(Grade::kOk, "none: loopback", "");
  }
  const std::string where = Printable(facts.folder.value) + " (" + facts.folder.source + ")";
  if (!facts.certificate.ok()) {
    return finding(Grade::kBad,
                   where + ": " + Printable(std::string(facts.certificate.status().message())),
                   "tactus admin issue makes such a folder (docs/security.md)");
  }
  const std::int64_t left = facts.certificate->end - facts.now;
  const std::string holder = Printable(identity::SpiffeIdOf(facts.certificate->holder));
  const std::string found = holder + " for " + FormatSpan(Seconds(static_cast<double>(left)));
  return left < kExpirySoon
             ? finding(Grade::kLook, found,
                       "tactus admin issue --renew, with the authority's folder, before then")
             : finding(Grade::kOk, found, "");
}

std::vector<Finding> JudgeNodes(const CoordinatorFacts& facts,
                                const absl::StatusOr<v1::ListNodesResponse>& nodes) {
  std::vector<Finding> findings;
  const std::string server = Printable(facts.server.value) + " (" + facts.server.source + ")";
  if (!nodes.ok()) {
    // Who never named one has perhaps none.
    const bool named = facts.server.source != "default";
    return {{.grade = named ? Grade::kBad : Grade::kLook,
             .subject = "coordinator",
             .found = server + ": " + Printable(std::string(nodes.status().message())),
             .advice = "start it (systemctl start tactus-coordinator), or name another by "
                       "--server; tactus run needs none"}};
  }
  const bool slow = facts.answer_seconds > kAnswerSlow;
  findings.push_back(
      {.grade = slow ? Grade::kLook : Grade::kOk,
       .subject = "coordinator",
       .found = server + " answered within " +
                FormatCount(static_cast<std::uint64_t>(std::ceil(facts.answer_seconds * 1e3))) +
                " ms",
       .advice = slow ? "look at its load and at the way there" : ""});
  findings.push_back(JudgeClock(facts, *nodes));
  const std::size_t before = findings.size();
  for (const v1::Node& node : nodes->nodes()) JudgeNode(node, facts, &findings);
  if (nodes->nodes().empty()) {
    findings.push_back(
        {.grade = Grade::kBad,
         .subject = "nodes",
         .found = "no agent has come",
         .advice = "start one: tactus-agent --coordinator " + Printable(facts.server.value)});
  } else if (findings.size() == before) {
    findings.push_back({.subject = "nodes",
                        .found = CountOf(static_cast<std::uint64_t>(nodes->nodes_size()), "node") +
                                 ", all well and of version " + facts.version});
  }
  return findings;
}

std::string FormatFindings(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows;
  for (const Finding& finding : findings) {
    rows.push_back({Word(finding.grade), finding.subject,
                    finding.found + (finding.advice.empty() ? "" : ": " + finding.advice)});
  }
  return FormatTable(rows);
}

}  // namespace tactus::client
