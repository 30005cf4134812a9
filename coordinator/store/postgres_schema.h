// The tables in PostgreSQL, as the list of steps that made them.

#pragma once

#include <libpq-fe.h>

#include <span>

#include "absl/status/status.h"

namespace tactus::store {

// A table that the embedded database has too, with the same columns.
struct CommonTable {
  const char* name;
  const char* key;  // that its rows differ by, as ORDER BY has it, in bytes' order in both
};
// All but `meta`, which has rows in one that are tables in the other: see postgres_copy.cc.
std::span<const CommonTable> CommonTables();

// What has to be there before anybody leads: the table of terms (see postgres_lease.h) and the
// database's name for itself. Does nothing where they are. Errors: as RunText.
absl::Status LayPostgresGround(PGconn* connection);

// Runs the steps that the database has not seen. Within a transaction of whoever leads.
// Errors: FailedPrecondition, a newer program's; as RunText.
absl::Status MigratePostgres(PGconn* connection);

}  // namespace tactus::store
