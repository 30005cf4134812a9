// What the command line says of the box that workers run in.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/box.h"

namespace tactus::agent {

// Unread. Empty text = not given.
struct BoxFlags {
  std::string sandbox = "on";
  bool require_sandbox = false;
  std::string worker_user{};
  std::vector<std::string> data_roots{};
  std::vector<std::string> writable{};
  std::vector<std::string> private_places{};
  std::string worker_memory{};
  std::uint64_t worker_tasks = 8192;
  std::string cgroup{};
};

// What of the host the box depends on, found by main.
struct BoxHost {
  std::string home{};                      // of this user; empty: not known
  std::vector<std::string> own_folders{};  // states and keys of daemons, there or not
  std::uint64_t memory_bytes = 0;          // 0: not known
};

// Bytes of "512M", "16G", or a plain number: powers of 1024 by K, M, G, T. Error: InvalidArgument,
// "found ..., allowed is ...".
absl::StatusOr<std::uint64_t> ParseBytes(const std::string& text);

// Checks the flags. The state folder is filled in when it is there, by the agent. Errors:
// InvalidArgument or FailedPrecondition, "flag: what was found and what is allowed".
absl::StatusOr<box::BoxOptions> ResolveBox(const BoxFlags& flags, const BoxHost& host);

}  // namespace tactus::agent
