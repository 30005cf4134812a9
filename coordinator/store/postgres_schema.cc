#include "coordinator/store/postgres_schema.h"

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "coordinator/store/postgres_connection.h"

namespace tactus::store {
namespace {

// Two that begin at once take turns: IF NOT EXISTS alone lets one of them fail. A term is one
// coordinator's time of leading, and the one row of `lease` that of who leads; see
// postgres_lease.h. `writes`: how many transactions a term made.
constexpr const char* kGround =
    "BEGIN;"
    "SELECT pg_advisory_xact_lock(7070, hashtext(current_schema()));"
    "CREATE TABLE IF NOT EXISTS server (id TEXT NOT NULL);"
    "INSERT INTO server SELECT upper(replace(gen_random_uuid()::text, '-', ''))"
    "  WHERE NOT EXISTS (SELECT 1 FROM server);"
    "CREATE TABLE IF NOT EXISTS terms ("
    "  epoch BIGINT PRIMARY KEY,"
    "  holder TEXT NOT NULL,"
    "  address TEXT NOT NULL,"
    "  begun TIMESTAMPTZ NOT NULL,"
    "  ended TIMESTAMPTZ,"
    "  writes BIGINT NOT NULL DEFAULT 0,"
    "  last_write TIMESTAMPTZ);"
    "CREATE TABLE IF NOT EXISTS lease (holder TEXT NOT NULL, until TIMESTAMPTZ NOT NULL);"
    "INSERT INTO lease SELECT '', '-infinity' WHERE NOT EXISTS (SELECT 1 FROM lease);"
    "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL);"
    "INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version);"
    "COMMIT";

// Step i brings version i to version i + 1. Steps that were released are never changed, only
// followed. The tables are those of schema.cc, with these differences: texts are ordered by their
// bytes, numbers are BIGINT, and the view has its numbers by PostgreSQL's words. The functions
// stand for those that SQLite has, or is given (sql_functions.h).
constexpr const char* kPostgresSteps[] = {
    "CREATE FUNCTION max(a BIGINT, b BIGINT) RETURNS BIGINT LANGUAGE SQL IMMUTABLE"
    "  AS 'SELECT greatest(a, b)';"
    // PackLabels of job_columns.h: each key and value after its length, 4 bytes little-endian.
    "CREATE FUNCTION job_label(packed BYTEA, key TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS "
    "$$"
    " DECLARE"
    "  at INTEGER := 0; size INTEGER; wanted BYTEA := convert_to(key, 'UTF8');"
    "  is_key BOOLEAN := TRUE; found BOOLEAN := FALSE;"
    " BEGIN"
    "  WHILE at + 4 <= length(packed) LOOP"
    "   size := get_byte(packed, at) + (get_byte(packed, at + 1) << 8)"
    "     + (get_byte(packed, at + 2) << 16);"
    "   at := at + 4;"
    "   IF at + size > length(packed) THEN RETURN ''; END IF;"
    "   IF is_key THEN found := substring(packed FROM at + 1 FOR size) = wanted;"
    "   ELSIF found THEN RETURN convert_from(substring(packed FROM at + 1 FOR size), 'UTF8');"
    "   END IF;"
    "   at := at + size; is_key := NOT is_key;"
    "  END LOOP;"
    "  RETURN '';"
    " END $$;"
    "CREATE TABLE jobs ("
    "  id BIGINT PRIMARY KEY,"
    "  name TEXT COLLATE \"C\" NOT NULL UNIQUE,"
    "  request_id TEXT COLLATE \"C\" UNIQUE,"
    "  state BIGINT NOT NULL,"
    "  is_final BIGINT NOT NULL,"
    "  priority BIGINT NOT NULL,"
    "  revision BIGINT NOT NULL,"
    "  create_time BIGINT NOT NULL,"
    "  update_time BIGINT NOT NULL,"
    "  end_time BIGINT NOT NULL,"
    "  rounds_limit BIGINT NOT NULL DEFAULT 9223372036854775807,"
    "  labels BYTEA NOT NULL,"
    "  blobs TEXT NOT NULL,"
    "  spec BYTEA NOT NULL,"
    "  record BYTEA NOT NULL);"
    "CREATE INDEX jobs_unfinished ON jobs (id) WHERE is_final = 0;"
    "CREATE INDEX jobs_by_create_time ON jobs (create_time, id);"
    "CREATE INDEX jobs_over ON jobs (end_time) WHERE is_final = 1;"
    "CREATE INDEX jobs_unthinned ON jobs (rounds_limit, end_time) WHERE is_final = 1;"
    "CREATE TABLE rounds (job BIGINT, round BIGINT, record BYTEA NOT NULL, PRIMARY KEY (job, "
    "round));"
    "CREATE TABLE decisions ("
    "  job BIGINT,"
    "  plan_version BIGINT,"
    "  axis BIGINT,"
    "  record BYTEA NOT NULL,"
    "  PRIMARY KEY (job, plan_version, axis));"
    "CREATE TABLE validations ("
    "  job BIGINT, rounds BIGINT, record BYTEA NOT NULL, PRIMARY KEY (job, rounds));"
    "CREATE TABLE nodes (name TEXT COLLATE \"C\" PRIMARY KEY, record BYTEA NOT NULL);"
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value BIGINT NOT NULL);"
    "INSERT INTO meta VALUES ('last_job_id', 0), ('names_from', 0);"
    "CREATE TABLE forgotten (job BIGINT PRIMARY KEY);"
    "CREATE TABLE thinning ("
    "  job BIGINT PRIMARY KEY, stride BIGINT NOT NULL, thinned_below BIGINT NOT NULL);"
    "CREATE TABLE set_aside ("
    "  id BIGINT PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  blobs TEXT NOT NULL,"
    "  spec BYTEA NOT NULL,"
    "  record BYTEA NOT NULL);"
    "CREATE TABLE memories (job BIGINT PRIMARY KEY, memory BYTEA NOT NULL);"
    "CREATE TABLE priors ("
    "  key TEXT COLLATE \"C\" PRIMARY KEY, number BIGINT NOT NULL, prior BYTEA NOT NULL);"
    "CREATE TABLE names (stem TEXT COLLATE \"C\" PRIMARY KEY, number BIGINT NOT NULL);"
    // Of a name that is none of ours the last 18 digits count, as far as there are any.
    "CREATE VIEW numbered AS SELECT id, rtrim(name, '0123456789') AS stem,"
    "  coalesce(CAST(nullif(right(substr(name, length(rtrim(name, '0123456789')) + 1), 18), '')"
    "    AS BIGINT), 0) AS number FROM jobs",
};

constexpr CommonTable kCommonTables[] = {{"jobs", "id"},
                                         {"rounds", "job, round"},
                                         {"decisions", "job, plan_version, axis"},
                                         {"validations", "job, rounds"},
                                         {"nodes", "name"},
                                         {"forgotten", "job"},
                                         {"thinning", "job"},
                                         {"set_aside", "id"},
                                         {"memories", "job"},
                                         {"priors", "key"},
                                         {"names", "stem"}};

}  // namespace

std::span<const CommonTable> CommonTables() { return kCommonTables; }

absl::Status LayPostgresGround(PGconn* connection) {
  const absl::StatusOr<PostgresResult> laid =
      RunText(connection, "SELECT to_regclass('schema_version') IS NOT NULL");
  if (!laid.ok() || TextAt(laid->get(), 0, 0) == "t") return laid.status();
  return RunText(connection, kGround).status();
}

absl::Status MigratePostgres(PGconn* connection) {
  const absl::StatusOr<PostgresResult> found =
      RunText(connection, "SELECT version FROM schema_version FOR UPDATE");
  if (!found.ok()) return found.status();
  const std::int64_t version = std::atoll(TextAt(found->get(), 0, 0).c_str());
  const auto known = static_cast<std::int64_t>(std::size(kPostgresSteps));
  if (version < 0 || version > known) {
    return absl::FailedPreconditionError("store: schema version " + std::to_string(version) +
                                         " was written by a newer program; this one knows 0 to " +
                                         std::to_string(known));
  }
  for (std::int64_t next = version; next < known; ++next) {
    const absl::Status status = RunText(connection, kPostgresSteps[next]).status();
    if (!status.ok()) return status;
  }
  if (version == known) return absl::OkStatus();
  return RunText(connection, "UPDATE schema_version SET version = " + std::to_string(known))
      .status();
}

}  // namespace tactus::store
