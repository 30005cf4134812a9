// The tables in PostgreSQL, as the list of steps that made them.

#pragma once

#include <libpq-fe.h>

#include "absl/status/status.h"

namespace tactus::store {

// What has to be there before anybody leads: the table of terms (see postgres_lease.h) and the
// database's name for itself. Does nothing where they are. Errors: as RunText.
absl::Status LayPostgresGround(PGconn* connection);

// Runs the steps that the database has not seen. Within a transaction of whoever leads.
// Errors: FailedPrecondition, a newer program's; as RunText.
absl::Status MigratePostgres(PGconn* connection);

}  // namespace tactus::store
