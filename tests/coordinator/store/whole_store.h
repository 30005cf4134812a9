// What the store does piece by piece, at one go.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/store/store.h"

namespace tactus::store {

// Copies the database to a new file.
absl::Status CopyWhole(Store& store, const std::string& path);

// What all jobs name, each once.
std::vector<std::string> AllBlobs(Store& store);

}  // namespace tactus::store
