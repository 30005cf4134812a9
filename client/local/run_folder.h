// The folder of one `tactus run`.

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tactus::client {

// Makes STATE/runs/TIME-NAME, private to the user; a number is added when it exists. `name` is
// shortened, because sockets in it must have short paths. Errors: as runtime::MakeWritableFolder.
absl::StatusOr<std::string> MakeRunFolder(const std::string& state_folder, const std::string& name);

// What is left of a run's folder.
enum class RunRemains {
  kResult,  // the sub-folder result/
  kLogs,    // the files *.log that are not empty, wherever they are, and result/
};

// Removes everything else, and what is then empty, the folder included.
void CleanRunFolder(const std::string& folder, RunRemains remains);

}  // namespace tactus::client
