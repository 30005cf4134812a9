// Says where in a job file an error belongs.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::data {

// `status`, which is not OK, with `prefix` before its message.
inline absl::Status Annotate(const std::string& prefix, const absl::Status& status) {
  return absl::Status(status.code(), prefix + std::string(status.message()));
}

}  // namespace tactus::data
