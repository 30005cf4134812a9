#include "agent/daemon/memory_kills.h"

#include <fstream>
#include <string_view>

namespace tactus::agent {
namespace {

// Of the line "oom_kill N".
std::optional<std::uint64_t> OomKills(const std::string& path) {
  std::ifstream in(path);
  std::string name;
  for (std::uint64_t count = 0; in >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

std::string Rose(const std::optional<std::uint64_t>& before,
                 const std::optional<std::uint64_t>& after) {
  if (!before || !after || *after <= *before) return "";
  return " rose from " + std::to_string(*before) + " to " + std::to_string(*after);
}

}  // namespace

MemoryKillFiles FindMemoryKillFiles() {
  MemoryKillFiles files{.vmstat = "/proc/vmstat"};
  constexpr std::string_view kUnified = "0::";
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kUnified)) continue;
    files.cgroup = line.substr(kUnified.size());
    files.cgroup_events = "/sys/fs/cgroup" + files.cgroup + "/memory.events";
  }
  return files;
}

MemoryKills CountMemoryKills(const MemoryKillFiles& files) {
  return {.in_cgroup = OomKills(files.cgroup_events), .on_host = OomKills(files.vmstat)};
}

std::string MemoryKillWords(const MemoryKillFiles& files, const MemoryKills& before,
                            const MemoryKills& after) {
  const std::string in_cgroup = Rose(before.in_cgroup, after.in_cgroup);
  if (!in_cgroup.empty()) {
    return "killed by the kernel for want of memory (oom_kill of cgroup " + files.cgroup +
           in_cgroup + ")";
  }
  const std::string on_host = Rose(before.on_host, after.on_host);
  if (on_host.empty()) return "";
  return "perhaps killed by the kernel for want of memory (oom_kill of the host" + on_host + ")";
}

}  // namespace tactus::agent
