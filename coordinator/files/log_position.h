// How far a reader of a job's logs has come.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/id.h"

namespace tactus::service {

// Of each worker that was read from: one past the last byte of its output that the reader has.
using LogPosition = std::map<WorkerId, std::uint64_t>;

// The position as a token for the caller to come back with.
std::string ToToken(const std::string& job, const LogPosition& position);

// The reverse. Errors: InvalidArgument with the reason INVALID_RESUME_TOKEN, no token of this job's
// logs.
absl::StatusOr<LogPosition> FromToken(const std::string& job, const std::string& token);

}  // namespace tactus::service
