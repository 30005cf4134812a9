#include "coordinator/store/schema.h"

#include <cstdint>
#include <string>

namespace tactus::store {
namespace {

// `record` is the encoding of record_codec.h; the other columns are what is searched for or must be
// unique.
constexpr const char* kSteps[] = {
    "CREATE TABLE jobs ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  request_id TEXT UNIQUE,"
    "  state INTEGER NOT NULL,"
    "  is_final INTEGER NOT NULL,"
    "  revision INTEGER NOT NULL,"
    "  create_time INTEGER NOT NULL,"
    "  update_time INTEGER NOT NULL,"
    "  spec BLOB NOT NULL,"
    "  record BLOB NOT NULL);"
    "CREATE INDEX jobs_unfinished ON jobs (id) WHERE is_final = 0;"
    "CREATE TABLE rounds ("
    "  job INTEGER NOT NULL,"
    "  round INTEGER NOT NULL,"
    "  record BLOB NOT NULL,"
    "  PRIMARY KEY (job, round)) WITHOUT ROWID;",
    "CREATE TABLE decisions ("
    "  job INTEGER NOT NULL,"
    "  plan_version INTEGER NOT NULL,"
    "  axis INTEGER NOT NULL,"
    "  record BLOB NOT NULL,"
    "  PRIMARY KEY (job, plan_version, axis)) WITHOUT ROWID;",
};

absl::StatusOr<std::int64_t> Version(sqlite3* connection) {
  absl::StatusOr<Statement> query = Statement::Prepare(connection, "PRAGMA user_version");
  if (!query.ok()) return query.status();
  const absl::StatusOr<bool> row = query->Step();
  if (!row.ok()) return row.status();
  return query->ColumnInt(0);
}

}  // namespace

std::span<const char* const> SchemaSteps() { return kSteps; }

absl::Status Migrate(sqlite3* connection, std::span<const char* const> steps) {
  const absl::StatusOr<std::int64_t> version = Version(connection);
  if (!version.ok()) return version.status();
  const auto known = static_cast<std::int64_t>(steps.size());
  if (*version < 0 || *version > known) {
    return absl::FailedPreconditionError("store: schema version " + std::to_string(*version) +
                                         " was written by a newer program; this one knows 0 to " +
                                         std::to_string(known));
  }
  for (std::int64_t next = *version; next < known; ++next) {
    const absl::Status status = Execute(
        connection, std::string("BEGIN IMMEDIATE;") + steps[static_cast<std::size_t>(next)] +
                        ";PRAGMA user_version = " + std::to_string(next + 1) + ";COMMIT");
    if (!status.ok()) {
      if (sqlite3_get_autocommit(connection) == 0) Execute(connection, "ROLLBACK").IgnoreError();
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace tactus::store
