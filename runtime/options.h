// What both daemons read from the command line and the environment: durations with units, folders.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"

namespace tactus::runtime {

// Parses a duration as people write it: numbers with the units d, h, m, s, ms, us, ns, largest
// first, each at most once, the last one may have a fraction: "5s", "200ms", "30m", "1h30m",
// "1.5h", and "0". Errors: InvalidArgument, "found "5", allowed is a number with a unit ...";
// OutOfRange, longer than can be counted.
absl::StatusOr<Duration> ParseDuration(const std::string& text);

// The shortest text that ParseDuration reads back as the same duration. Requires: duration >= 0.
std::string FormatDuration(Duration duration);

// Where a user's files live, by the XDG base directory specification.
struct UserFolders {
  std::string state;   // "~/.local/state/tactus"
  std::string config;  // "~/.config/tactus"
};

// The variables that say so; empty = not set. A relative path in an XDG variable is ignored, as the
// specification asks; without HOME, /var/lib/tactus and /etc/tactus stand in.
struct FolderVariables {
  std::string xdg_state_home = {};
  std::string xdg_config_home = {};
  std::string home = {};
};
UserFolders FoldersFrom(const FolderVariables& variables);

// The same from this process's environment. Called from main files only.
UserFolders FoldersFromEnvironment();

}  // namespace tactus::runtime
