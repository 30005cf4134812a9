// What a child becomes between fork and exec, so that the program it runs is in the box from its
// first instruction on.

#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/box/landlock.h"
#include "agent/box/seccomp.h"
#include "agent/box/worker_user.h"
#include "base/descriptor.h"

namespace tactus::box {

// All of it is made before the fork. What is not there is not done.
struct Confinement {
  std::optional<LandlockRules> rules{};
  std::shared_ptr<const Filter> filter{};      // shared by all workers of the agent
  std::optional<WorkerUser> user{};            // else it stays the agent's
  bool drop_privileges = true;                 // no capability, and none to be got
  std::shared_ptr<const Descriptor> cgroup{};  // cgroup.procs of it; shared with who removes it
  std::uint64_t tasks_max = 0;                 // of all of the user's; 0: no limit
  std::uint64_t data_bytes_max = 0;            // of each process; 0: no limit
};

// What a child was at when it failed; the numbers pass through a pipe.
enum class Step : int {
  kNone,
  kStart,
  kCgroup,
  kLimits,
  kUser,
  kPrivileges,
  kFiles,
  kCalls,
  kExec
};

// For people: "its user cannot be taken on".
const char* WordsOf(Step step);

// Takes all of it on but the filter, which is the last. Async-signal-safe, but for the reading of
// what was made before. On failure kNone is not returned, and errno says why.
Step Enter(const Confinement& confinement);

// The filter. As Enter.
Step EnterFilter(const Confinement& confinement);

}  // namespace tactus::box
