// A copy of a PostgreSQL database as a file of the embedded kind.

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/postgres_connection.h"
#include "coordinator/store/store.h"

namespace tactus::store {

// Store::BeginCopy, over a connection of its own and of one moment. The copy is written beside
// `path` first, as BeginCopy of backup.h does it.
absl::StatusOr<std::unique_ptr<StoreCopy>> BeginPostgresCopy(const PostgresDial& dial,
                                                             const std::string& path);

}  // namespace tactus::store
