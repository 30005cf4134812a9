// Whether the kernel killed a worker for want of memory: a signal 9 alone does not say so.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tactus::agent {

// Where the kernel counts such kills; a file that is not there says nothing.
struct MemoryKillFiles {
  std::string cgroup{};  // for people: this process's, which its workers share
  std::string cgroup_events{};
  std::string vmstat{};
};

// Of this process: of the unified hierarchy (version 2), where it is in one.
MemoryKillFiles FindMemoryKillFiles();

// Processes that the kernel has killed so far; nothing: not known.
struct MemoryKills {
  std::optional<std::uint64_t> in_cgroup{};
  std::optional<std::uint64_t> on_host{};
};
MemoryKills CountMemoryKills(const MemoryKillFiles& files);

// Why a process that SIGKILL ended has probably been killed, by the counts of before it started and
// of after its end; empty: they do not say. A count rises before the signal is sent. That of the
// cgroup also stands for the limits of those above it, and for its other processes, which are the
// agent's; that of the host for anybody's.
std::string MemoryKillWords(const MemoryKillFiles& files, const MemoryKills& before,
                            const MemoryKills& after);

}  // namespace tactus::agent
