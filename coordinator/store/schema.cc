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
    // The blobs come last, so that a search reads no page that only continues one. `labels` is
    // PackLabels of job_columns.h; `blobs` is BlobsOf, one after the other. `rounds_limit`: the
    // rounds kept are known to be no more. `forgotten`: jobs that are gone while some of their
    // history is still there. `thinning`: see round_thinning.h.
    "CREATE TABLE jobs_new ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  request_id TEXT UNIQUE,"
    "  state INTEGER NOT NULL,"
    "  is_final INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL,"
    "  revision INTEGER NOT NULL,"
    "  create_time INTEGER NOT NULL,"
    "  update_time INTEGER NOT NULL,"
    "  end_time INTEGER NOT NULL,"
    "  rounds_limit INTEGER NOT NULL DEFAULT 9223372036854775807,"
    "  labels BLOB NOT NULL,"
    "  blobs TEXT NOT NULL,"
    "  spec BLOB NOT NULL,"
    "  record BLOB NOT NULL);"
    "INSERT INTO jobs_new (id, name, request_id, state, is_final, priority, revision, create_time,"
    "                      update_time, end_time, labels, blobs, spec, record) "
    "  SELECT id, name, request_id, state, is_final, 0, revision, create_time, update_time,"
    "         CASE is_final WHEN 1 THEN update_time ELSE 0 END, record_labels(record), '', spec,"
    "         record FROM jobs;"
    "DROP TABLE jobs;"
    "ALTER TABLE jobs_new RENAME TO jobs;"
    "CREATE INDEX jobs_unfinished ON jobs (id) WHERE is_final = 0;"
    "CREATE INDEX jobs_by_create_time ON jobs (create_time);"
    "CREATE INDEX jobs_over ON jobs (end_time) WHERE is_final = 1;"
    "CREATE INDEX jobs_unthinned ON jobs (rounds_limit, end_time) WHERE is_final = 1;"
    "CREATE TABLE nodes (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "INSERT INTO meta VALUES ('server_id', hex(randomblob(16))), ('last_job_id', 0);"
    "CREATE TABLE forgotten (job INTEGER PRIMARY KEY);"
    "CREATE TABLE thinning ("
    "  job INTEGER PRIMARY KEY,"
    "  stride INTEGER NOT NULL,"
    "  thinned_below INTEGER NOT NULL);",
    // Jobs whose records could not be read, as they were in `jobs`; `reason`: what was wrong.
    "CREATE TABLE set_aside ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  blobs TEXT NOT NULL,"
    "  spec BLOB NOT NULL,"
    "  record BLOB NOT NULL);",
    // What the planners of jobs that are not over have learned.
    "CREATE TABLE memories (job INTEGER PRIMARY KEY, memory BLOB NOT NULL);",
    // What jobs found for the next of their kinds.
    "CREATE TABLE priors (key TEXT PRIMARY KEY, number INTEGER NOT NULL, prior BLOB NOT NULL)"
    "  WITHOUT ROWID;",
    // A job's name is a stem, which ends with a dash, and a number. `names`: the highest number of
    // jobs that are no more. Jobs had their ids for numbers before: what was deleted then may have
    // had any name up to the last id.
    "CREATE TABLE names (stem TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE VIEW numbered AS SELECT id, rtrim(name, '0123456789') AS stem,"
    "  CAST(substr(name, length(rtrim(name, '0123456789')) + 1) AS INTEGER) AS number FROM jobs;"
    "INSERT INTO meta SELECT 'names_from', max(value, (SELECT ifnull(max(id), 0) FROM jobs))"
    "  FROM meta WHERE key = 'last_job_id';",
    // Validations while jobs train, after so many rounds.
    "CREATE TABLE validations ("
    "  job INTEGER NOT NULL,"
    "  rounds INTEGER NOT NULL,"
    "  record BLOB NOT NULL,"
    "  PRIMARY KEY (job, rounds)) WITHOUT ROWID;",
};

absl::StatusOr<std::int64_t> Version(sqlite3* connection) {
  absl::StatusOr<SqliteStatement> query =
      SqliteStatement::Prepare(connection, "PRAGMA user_version");
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
