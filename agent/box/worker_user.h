// The user as whom workers run.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::box {

struct WorkerUser {
  uid_t uid = 0;  // never 0
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // besides: those by which GPUs are reached
};

// Of a name, or a number that the system need not know, whose group then has the same number. With
// the groups video and render where the system has them. Errors: InvalidArgument, no such user, or
// root; FailedPrecondition, this process cannot become another user, as it is not root.
absl::StatusOr<WorkerUser> FindWorkerUser(const std::string& text);

// Sees that the user gets to `place`, absolute, a folder or a program: that it and all folders on
// the way may be passed, or run, by others, or by the user's group. Error: FailedPrecondition, the
// first that may not.
absl::Status CheckReachable(const std::string& place, const WorkerUser& user);

}  // namespace tactus::box
