// The tables, as the list of steps that made them.

#pragma once

#include <span>

#include "absl/status/status.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {

// Step i brings version i to version i + 1. Steps that were released are never changed, only
// followed. They call what AddSqlFunctions adds.
std::span<const char* const> SchemaSteps();

// Runs the steps that the database has not seen, each with its new version number (SQLite's
// user_version) in one transaction, so that a crash in between leaves one version or the other.
// Errors: FailedPrecondition, the database's version is above steps.size().
absl::Status Migrate(sqlite3* connection, std::span<const char* const> steps);

}  // namespace tactus::store
