// A copy of an open database, made piece by piece.

#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace tactus::store {

// Store::BeginCopy. The copy is written beside `path` first ("PATH.partial", replaced when it is
// there) and given its name when it is whole. Between two pieces the connection is free; what it
// writes then goes into the copy by itself.
absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(sqlite3* connection, const std::string& path);

}  // namespace tactus::store
