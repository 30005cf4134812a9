#include "agent/box/cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/process.h"

namespace tactus::box {
namespace {

constexpr char kOfAgent[] = "/agent";  // where the agent itself goes
constexpr auto kTryAgain = std::chrono::milliseconds(20);
constexpr int kTries = 500;  // 10 s
constexpr int kNamesMax = 16;

// Such files take what one call writes, or refuse it. 0, or errno.
int WriteTo(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open()) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

void KillAll(const std::string& folder) {
  if (WriteTo(folder + "/cgroup.kill", "1") == 0) return;
  // Before Linux 5.14. Whoever is started meanwhile is found by the next try.
  std::ifstream in(folder + "/cgroup.procs");
  for (pid_t pid = 0; in >> pid;) ::kill(pid, SIGKILL);
}

// True where it is gone.
bool RemoveOnce(const std::string& folder) {
  KillAll(folder);
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

struct Mount {
  std::string root{};   // of the hierarchy, as seen by this process
  std::string place{};  // in the tree of files
};

// Of the hierarchy of version 2. Source: proc(5), mountinfo.
std::optional<Mount> FindMount() {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream fields(line);
    std::string skipped;
    Mount mount;
    fields >> skipped >> skipped >> skipped >> mount.root >> mount.place;
    return mount;
  }
  return std::nullopt;
}

// This process's, as a folder; empty: none, or the top.
std::string OwnFolder() {
  const std::optional<Mount> mount = FindMount();
  if (!mount) return "";
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::/")) continue;
    std::string path = line.substr(3);
    if (mount->root != "/" && path.starts_with(mount->root)) path.erase(0, mount->root.size());
    return path == "/" || path.empty() ? "" : mount->place + path;
  }
  return "";
}

// systemd marks what it hands over; what belongs to a user other than root was handed to them.
bool IsDelegated(const std::string& folder) {
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    std::array<char, 4> value{};
    if (::getxattr(folder.c_str(), name, value.data(), value.size()) == 1 && value[0] == '1')
      return true;
  }
  struct stat found = {};
  return ::geteuid() != 0 && ::stat(folder.c_str(), &found) == 0 && found.st_uid == ::geteuid();
}

absl::StatusOr<std::string> FindFolder(const std::string& given) {
  if (!given.empty()) {
    if (::access((given + "/cgroup.procs").c_str(), W_OK) == 0) return given;
    return absl::FailedPreconditionError("cgroup: " + given +
                                         " is no cgroup of version 2 that can be written to");
  }
  if (!FindMount())
    return absl::FailedPreconditionError("this host mounts no cgroups of version 2");
  std::string own = OwnFolder();
  if (own.empty()) return absl::FailedPreconditionError("the agent is in no cgroup of its own");
  if (IsDelegated(own)) return own;
  return absl::FailedPreconditionError("the agent's cgroup is not delegated to it");
}

// Hands a controller down both levels, as far as it is there.
bool Enable(const std::string& delegated, const std::string& folder,
            const std::string& controller) {
  return WriteTo(delegated + "/cgroup.subtree_control", "+" + controller) == 0 &&
         WriteTo(folder + "/cgroup.subtree_control", "+" + controller) == 0;
}

absl::Status MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return runtime::FileError(errno, folder, "cannot be made");
}

}  // namespace

// Removes cgroups whose processes are on their way out, on a thread of its own.
class CgroupRemover {
 public:
  ~CgroupRemover() {
    stopped_ = true;
    thread_.join();
  }

  void Remove(const std::string& folder) {
    boost::asio::post(thread_, [this, folder] {
      for (int i = 0; i < kTries && !RemoveOnce(folder); ++i) {
        if (stopped_) return;  // the next agent goes on with it
        std::this_thread::sleep_for(kTryAgain);
      }
    });
  }

 private:
  std::atomic<bool> stopped_ = false;
  boost::asio::thread_pool thread_{1};
};

Cgroup::Cgroup(std::string folder, Descriptor procs, std::shared_ptr<CgroupRemover> remover)
    : folder_(std::move(folder)),
      procs_(std::make_shared<const Descriptor>(std::move(procs))),
      remover_(std::move(remover)) {}

Cgroup::~Cgroup() {
  procs_.reset();
  if (!RemoveOnce(folder_)) remover_->Remove(folder_);
}

void Cgroup::Kill() const { KillAll(folder_); }

absl::StatusOr<std::unique_ptr<Cgroups>> Cgroups::Open(const Place& place) {
  const absl::StatusOr<std::string> delegated = FindFolder(place.folder);
  if (!delegated.ok()) return delegated.status();
  const std::string folder = *delegated + "/" + place.name;
  if (absl::Status made = MakeFolder(folder); !made.ok()) return made;
  if (*delegated == OwnFolder()) {
    const std::string own = *delegated + kOfAgent;
    if (absl::Status made = MakeFolder(own); !made.ok()) return made;
    if (const int error = WriteTo(own + "/cgroup.procs", "0"); error != 0) {
      ::rmdir(folder.c_str());
      return runtime::FileError(error, own, "cannot be joined");
    }
  }
  const bool has_memory = Enable(*delegated, folder, "memory");
  const bool has_tasks = Enable(*delegated, folder, "pids");
  std::unique_ptr<Cgroups> cgroups(new Cgroups(folder, has_memory, has_tasks));
  for (const std::string& name : runtime::NamesIn(folder)) {
    const std::string left = folder + "/" + name;
    struct stat found = {};
    if (::lstat(left.c_str(), &found) == 0 && S_ISDIR(found.st_mode))
      cgroups->remover_->Remove(left);
  }
  return cgroups;
}

Cgroups::Cgroups(std::string folder, bool has_memory, bool has_tasks)
    : folder_(std::move(folder)),
      has_memory_(has_memory),
      has_tasks_(has_tasks),
      remover_(std::make_shared<CgroupRemover>()) {}

Cgroups::~Cgroups() {
  ::rmdir(folder_.c_str());  // unless something is left for the next agent
}

absl::StatusOr<std::unique_ptr<Cgroup>> Cgroups::Make(const std::string& name,
                                                      const CgroupLimits& limits) const {
  // One of this name may still be on its way out.
  std::string folder = folder_ + "/" + name;
  int made = ::mkdir(folder.c_str(), 0755);
  for (int i = 1; made != 0 && errno == EEXIST && i < kNamesMax; ++i) {
    folder = folder_ + "/" + name + "." + std::to_string(i);
    made = ::mkdir(folder.c_str(), 0755);
  }
  if (made != 0) return runtime::FileError(errno, folder, "cannot be made");
  int error = 0;
  const auto set = [&](const char* file, const std::string& value) {
    if (error == 0) error = WriteTo(folder + "/" + file, value);
  };
  if (has_memory_ && limits.memory_bytes_max > 0) {
    set("memory.max", std::to_string(limits.memory_bytes_max));
    set("memory.oom.group", "1");
  }
  if (has_tasks_ && limits.tasks_max > 0) set("pids.max", std::to_string(limits.tasks_max));
  Descriptor procs(::open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (error == 0 && !procs.open()) error = errno;
  if (error != 0) {
    ::rmdir(folder.c_str());
    return runtime::FileError(error, folder, "cannot be set up");
  }
  // Swap would let a worker have more than it was given; a kernel without it has no such file.
  if (has_memory_ && limits.memory_bytes_max > 0) WriteTo(folder + "/memory.swap.max", "0");
  return std::unique_ptr<Cgroup>(new Cgroup(folder, std::move(procs), remover_));
}

}  // namespace tactus::box
