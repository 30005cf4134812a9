// What a folder holds.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::data {

// Names in `folder`, sorted byte by byte; those that begin with '.' are left out. Errors:
// FileError's.
absl::StatusOr<std::vector<std::string>> ListNames(const std::string& folder);

// The path of `name` in `folder`.
std::string JoinPath(const std::string& folder, const std::string& name);

}  // namespace tactus::data
