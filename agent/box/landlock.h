// The kernel's rules of files, ports and signals for a process and all that come of it: Landlock.

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::box {

// The version of Landlock's interface that the kernel has; 0: none, or switched off at boot.
// Source: landlock(7): 2 has renames between folders, 3 truncation, 4 TCP ports, 5 ioctl of
// devices, 6 signals and abstract Unix sockets.
int LandlockAbi();

// What may be done with what lies at a place and below.
enum class Access {
  kList,       // a folder's names alone
  kRead,       // read, listed, run
  kReadWrite,  // and changed, made, removed; no device can be made
  kDevice,     // read, written and commanded, not made or removed
};

// Rules that are made by the agent and taken on by a child: what no rule allows is refused. Data on
// a file that was opened before can be read on. What Landlock never looks at: a file's mode, owner
// and times, links' texts, and connections to Unix sockets that have a path.
class LandlockRules {
 public:
  struct Scopes {
    bool abstract_sockets = true;  // connects to none that is outside
  };

  // `abi`: as LandlockAbi, at least 1; what a newer version has is not used. Errors: as of
  // runtime::FileError.
  static absl::StatusOr<LandlockRules> Make(int abi, const Scopes& scopes);

  // Of what is open there, with O_PATH at least.
  absl::Status Allow(int descriptor, Access access);

  // Of what is at the path, links followed. Error: NotFound, nothing is.
  absl::Status Allow(const std::string& path, Access access);

  // To give to landlock_restrict_self.
  int descriptor() const { return rules_.get(); }

 private:
  LandlockRules(Descriptor rules, std::uint64_t handled)
      : rules_(std::move(rules)), handled_(handled) {}

  Descriptor rules_;
  std::uint64_t handled_ = 0;  // of files: what is refused where no rule allows it
};

// Takes the rules on, for this thread and what it starts. Wants no_new_privs. Async-signal-safe.
// 0, or errno.
int RestrictSelf(int rules);

}  // namespace tactus::box
