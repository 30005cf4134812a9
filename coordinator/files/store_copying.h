// Copies the database while it goes on being written.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"

namespace tactus::service {

// True while somebody has the copy of the database, of which there is one at a time; shared by all
// who make one.
using CopySlot = std::shared_ptr<std::atomic<bool>>;

struct CopyOrder {
  // Both outlive the copying.
  runtime::ControlThread& storage;
  store::Store& store;
  std::string path;                 // replaced when it is there
  std::function<bool()> cancelled;  // asked between two pieces, on the storage thread
};

// Copies the database to order.path, a piece a task of the storage thread, so that others have
// their turn in between. `done` is called there, once. Errors: Cancelled; as Store::BeginCopy. From
// any thread.
void CopyStore(const CopyOrder& order, std::function<void(const absl::Status&)> done);

// Removes what a copy left at `path` and beside it.
void RemoveCopy(const std::string& path);

}  // namespace tactus::service
