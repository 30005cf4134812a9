#include "agent/box/box.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "agent/box/beneath.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::box {
namespace {

// Of what is in the root folder, where data has roots: the system's programs, libraries and facts.
const std::set<std::string, std::less<>> kSystem = {
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "proc", "sys"};
constexpr std::size_t kNameBytes = 16;

struct Lack {
  const char* word;
  const char* meaning;
};

// In the order in which they are told. Source: landlock(7).
constexpr Lack kLacks[] = {
    {"files", "workers read and write whatever their user may (Linux 5.13 with Landlock in lsm=)"},
    {"truncation", "workers can empty files that they may not write to (Linux 6.2)"},
    {"ports", "workers can listen at any port (Linux 6.7)"},
    {"ioctl", "workers can command devices that they can open (Linux 6.10)"},
    {"signals",
     "workers can signal processes of their user and connect to abstract sockets (Linux 6.12)"},
    {"calls", "no system call is refused (a kernel with seccomp)"},
    {"memory", "a worker can take all memory (--worker-memory, and a delegated cgroup)"},
    {"tasks", "a worker can start processes without end (a delegated cgroup with pids)"},
    {"user",
     "workers run as the agent's user: they reach Unix sockets that are its user's, and change the "
     "mode and times of its files (--worker-user)"},
};

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

// None in /proc: what is beside a private place is allowed one by one when a worker starts, and its
// own folder there is made afterwards. What is private there (the kernel's memory, other processes)
// asks for capabilities, or for what Landlock says of tracing.
std::vector<std::string> KeyPlaces(const std::string& home) {
  std::vector<std::string> places = {
      "/etc/shadow",      "/etc/shadow-",     "/etc/gshadow",      "/etc/gshadow-",
      "/etc/ssl/private", "/etc/ssh",         "/etc/sudoers",      "/etc/sudoers.d",
      "/etc/tactus",      "/etc/krb5.keytab", "/etc/kubernetes",   "/etc/NetworkManager",
      "/etc/wireguard",   "/var/lib/tactus",  "/var/lib/kubelet",  "/var/spool/cron",
      "/run/secrets",     "/run/credentials", "/sys/kernel/debug", "/sys/kernel/tracing",
      "/sys/fs/bpf"};
  constexpr const char* kInHome[] = {".ssh",
                                     ".gnupg",
                                     ".aws",
                                     ".azure",
                                     ".kube",
                                     ".docker",
                                     ".netrc",
                                     ".pgpass",
                                     ".pypirc",
                                     ".git-credentials",
                                     ".config/gcloud",
                                     ".config/gh",
                                     ".config/rclone",
                                     ".config/tactus",
                                     ".cache/huggingface/token",
                                     ".huggingface/token",
                                     ".password-store",
                                     ".local/share/keyrings",
                                     ".mozilla",
                                     ".bash_history"};
  for (const char* name : kInHome) {
    if (!home.empty()) places.push_back(home + "/" + name);
  }
  return places;
}

std::vector<std::string> Lacks(const Support& support) {
  std::vector<std::string> lacks;
  const auto lack = [&](bool is, const char* word) {
    if (is) lacks.emplace_back(word);
  };
  const int abi = support.landlock_abi;
  lack(abi < 1, "files");
  lack(abi >= 1 && abi < 3, "truncation");  // else with all else of files
  lack(abi < 4, "ports");
  lack(abi < 5, "ioctl");
  lack(abi < 6, "signals");
  lack(!support.filters, "calls");
  lack(!support.memory, "memory");
  lack(!support.tasks, "tasks");
  lack(!support.user, "user");
  return lacks;
}

std::string LabelOf(const Support& support) {
  const std::vector<std::string> lacks = Lacks(support);
  if (lacks.empty()) return "full";
  std::string label = "lacks";
  for (const std::string& word : lacks) label += " " + word;
  return label;
}

std::string ExplainLacks(const Support& support) {
  std::string text;
  for (const std::string& word : Lacks(support)) {
    const auto lack = std::ranges::find(kLacks, std::string_view(word), &Lack::word);
    text += (text.empty() ? "" : "; ") + word + ": " + lack->meaning;
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Box>> Box::Open(const BoxOptions& options) {
  std::unique_ptr<Box> box(new Box(options));
  if (!options.on) return box;
  Support& support = box->support_;
  support.landlock_abi = LandlockAbi();
  support.filters = KernelFilters();
  support.user = options.user.has_value();
  if (support.filters) {
    absl::StatusOr<Filter> filter = MakeFilter();
    if (!filter.ok()) return filter.status();
    box->filter_ = std::make_shared<const Filter>(*std::move(filter));
  }
  if (absl::Status status = box->OpenCgroups(); !status.ok()) return status;
  if (!options.data_roots.empty() && support.landlock_abi < 1) {
    return absl::FailedPreconditionError(
        "data-roots: this kernel has no Landlock, which keeps workers to them");
  }
  std::string lacks;
  for (const std::string& word : Lacks(support)) {
    if (word != "user") lacks += (lacks.empty() ? "" : ", ") + word;
  }
  if (!options.required || lacks.empty()) return box;
  Support without = support;
  without.user = true;
  return absl::FailedPreconditionError(
      "require-sandbox: wanted are files, truncation, ports, ioctl, signals, calls, memory and "
      "tasks; lacking are " +
      lacks + ". " + ExplainLacks(without) +
      (box->why_no_cgroups_.empty() ? "" : "; cgroups: " + box->why_no_cgroups_));
}

// Without any, what was given by name is an error, and what was looked for is said.
absl::Status Box::OpenCgroups() {
  const std::string name = runtime::Sha256Of(options_.state_folder).substr(0, kNameBytes);
  absl::StatusOr<std::unique_ptr<Cgroups>> cgroups =
      Cgroups::Open({.folder = options_.cgroup_folder, .name = "tactus-" + name});
  if (!cgroups.ok()) {
    why_no_cgroups_ = std::string(cgroups.status().message());
    return options_.cgroup_folder.empty() ? absl::OkStatus() : cgroups.status();
  }
  cgroups_ = *std::move(cgroups);
  support_.memory = cgroups_->has_memory() && options_.memory_bytes_max > 0;
  support_.tasks = cgroups_->has_tasks() && options_.tasks_max > 0;
  if (!cgroups_->has_memory() || !cgroups_->has_tasks()) {
    why_no_cgroups_ = cgroups_->folder() + " has not the controllers memory and pids";
  }
  return absl::OkStatus();
}

absl::StatusOr<Held> Box::Confine(const WorkerNeeds& needs) const {
  Held held;
  held.confinement.drop_privileges = options_.on;
  if (!options_.on) return held;
  held.confinement.user = options_.user;
  held.confinement.filter = filter_;
  if (support_.landlock_abi >= 1) {
    // NCCL hands memory of GPUs from process to process by abstract sockets.
    absl::StatusOr<LandlockRules> rules =
        LandlockRules::Make(support_.landlock_abi, {.abstract_sockets = !needs.gpu});
    if (!rules.ok()) return rules.status();
    if (absl::Status status = AllowFiles(*rules, needs); !status.ok()) return status;
    held.confinement.rules = *std::move(rules);
  }
  // A user's processes are counted together, whoever started them: only of a user of their own.
  if (!support_.tasks && options_.user) {
    held.confinement.tasks_max = options_.tasks_max * options_.workers_max;
  }
  // Of each process alone. Drivers of GPUs set aside more address space than any limit.
  if (!support_.memory && !needs.gpu) held.confinement.data_bytes_max = options_.memory_bytes_max;
  if (cgroups_ == nullptr) return held;
  absl::StatusOr<std::unique_ptr<Cgroup>> cgroup = cgroups_->Make(
      needs.name, {.memory_bytes_max = options_.memory_bytes_max, .tasks_max = options_.tasks_max});
  if (!cgroup.ok()) return cgroup.status();
  held.confinement.cgroup = (*cgroup)->procs();
  held.cgroup = *std::move(cgroup);
  return held;
}

absl::Status Box::AllowFiles(LandlockRules& rules, const WorkerNeeds& needs) const {
  std::vector<std::string> hidden = options_.private_places;
  hidden.push_back(options_.state_folder);
  hidden.emplace_back("/dev");
  const bool rooted = !options_.data_roots.empty();
  const absl::StatusOr<std::set<FileId>> passed =
      AllowAllBut(rules, hidden, rooted ? kSystem : std::set<std::string, std::less<>>{});
  if (!passed.ok()) return passed.status();
  absl::Status status = AllowDevices(rules, needs.gpu);
  const auto allow = [&](const std::string& path, Access access) {
    if (status.ok()) status = rules.Allow(path, access);
  };
  // Where names are looked up, which /etc/resolv.conf may lead to.
  if (rooted && Exists("/run/systemd/resolve")) allow("/run/systemd/resolve", Access::kRead);
  for (const std::string& root : options_.data_roots) allow(root, Access::kRead);
  for (const std::string& path : needs.readable) allow(path, Access::kRead);
  for (const std::string& folder : needs.writable) allow(folder, Access::kReadWrite);
  for (const std::string& folder : options_.writable) allow(folder, Access::kReadWrite);
  // A folder that was gone through shows its names where the job is about it, and to others not.
  for (const std::string& folder : needs.named) {
    const Descriptor named(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat found = {};
    if (!named.open() || ::fstat(named.get(), &found) != 0) continue;  // the worker will say so
    if (passed->contains({found.st_dev, found.st_ino}) && status.ok()) {
      status = rules.Allow(named.get(), Access::kList);
    }
  }
  return status;
}

absl::Status Box::AllowDevices(LandlockRules& rules, bool gpu) const {
  std::vector<std::string> devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom"};
  for (const std::string& name : gpu ? runtime::NamesIn("/dev") : std::vector<std::string>{}) {
    const bool of_gpus = name.starts_with("nvidia") || name == "infiniband" || name == "gdrdrv";
    if (of_gpus) devices.push_back("/dev/" + name);
  }
  for (const std::string& device : devices) {
    if (!Exists(device)) continue;
    if (absl::Status status = rules.Allow(device, Access::kDevice); !status.ok()) return status;
  }
  return Exists("/dev/shm") ? rules.Allow("/dev/shm", Access::kReadWrite) : absl::OkStatus();
}

}  // namespace tactus::box
