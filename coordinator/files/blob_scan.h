// Reads which blobs the jobs name, while the store goes on being written.

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"

namespace tactus::service {

struct BlobScan {
  // Both outlive the scan.
  runtime::ControlThread& storage;
  store::Store& store;
  // Called on the storage thread: `names` with each stretch's, then `done` once. What a job begins
  // to name while the scan runs may be left out.
  std::function<void(const std::vector<std::string>& sha256)> names;
  std::function<void(const absl::Status&)> done;
};

// Of a store that nobody else uses, at one go. Errors: the store's.
absl::StatusOr<std::set<std::string>> ReadBlobs(store::Store& store);

// A stretch of jobs a task of the storage thread, so that others have their turn in between. From
// any thread.
void ScanBlobs(const BlobScan& scan);

}  // namespace tactus::service
