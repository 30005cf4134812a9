// Makes a state folder of a backup.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::backup {

struct RestoreOrder {
  std::string backup{};        // a folder that BackupFolder wrote
  std::string state_folder{};  // is not there, or empty
  bool damaged_too = false;    // what is whole of a backup is better than nothing
};

struct RestoreReport {
  std::size_t files = 0;    // blobs
  std::uint64_t bytes = 0;  // of blobs and database
  std::vector<std::string> problems{};
};

// Copies the database and every blob that its jobs name, each held against its hash, and looks
// through the database. The state folder is there when all of it is durable, or not at all; nothing
// of the backup changes. Blocking. Errors: NotFound, `backup` is none; FailedPrecondition, the
// state folder has something; DataLoss, all that is missing or damaged, unless damaged_too; what
// writing fails with.
absl::StatusOr<RestoreReport> Restore(const RestoreOrder& order);

}  // namespace tactus::backup
