#include "coordinator/store/store_import.h"

#include <libpq-fe.h>

#include <utility>
#include <vector>

#include "coordinator/store/backup.h"
#include "coordinator/store/postgres_connection.h"
#include "coordinator/store/postgres_database.h"
#include "coordinator/store/postgres_lease.h"
#include "coordinator/store/postgres_schema.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr const char* kFetchSome = "FETCH 500 FROM rows";
constexpr const char* kJobsTable = "jobs";
constexpr const char* kRoundsTable = "rounds";

// Alone with it: its log is read, and a coordinator that had it open would go on writing.
absl::StatusOr<Connection> OpenAlone(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Connection connection(opened);
  if (code != SQLITE_OK) return ConnectionStatus(opened, code, path);
  const absl::Status status =
      Execute(opened, "PRAGMA locking_mode = EXCLUSIVE; SELECT count(*) FROM sqlite_schema");
  if (!status.ok()) return absl::Status(status.code(), path + ": " + std::string(status.message()));
  return connection;
}

struct Columns {
  std::vector<std::string> names{};
  std::vector<bool> numbers{};  // else a text or blob

  std::string Listed() const {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
  }
};

absl::StatusOr<Columns> ColumnsOf(PGconn* connection, const std::string& table) {
  const absl::StatusOr<PostgresResult> none =
      RunText(connection, "SELECT * FROM " + table + " LIMIT 0");
  if (!none.ok()) return none.status();
  Columns columns;
  for (int i = 0; i < PQnfields(none->get()); ++i) {
    columns.names.emplace_back(PQfname(none->get(), i));
    columns.numbers.push_back(IsNumber(none->get(), i));
  }
  return columns;
}

// One import, within the transaction of a term.
class Import {
 public:
  Import(sqlite3* from, PGconn* to) : from_(from), to_(to) {}

  absl::StatusOr<Imported> Run();

 private:
  absl::Status CheckEmpty() const;
  absl::Status Put(const CommonTable& table, const Columns& columns);
  absl::Status PutMeta() const;
  absl::Status Compare(const CommonTable& table, const Columns& columns) const;
  absl::StatusOr<SqliteStatement> Rows(const CommonTable& table, const Columns& columns) const {
    return SqliteStatement::Prepare(
        from_, "SELECT " + columns.Listed() + " FROM " + table.name + " ORDER BY " + table.key);
  }

  sqlite3* const from_;
  PGconn* const to_;
  Imported imported_;
};

// What a coordinator that has led and had no job leaves is none: its terms, and the time of day.
absl::Status Import::CheckEmpty() const {
  std::string query =
      "SELECT 'meta' FROM meta WHERE key IN ('last_job_id', 'names_from') AND value > 0";
  for (const CommonTable& table : CommonTables()) {
    query += std::string(" UNION ALL SELECT '") + table.name + "' WHERE EXISTS (SELECT 1 FROM " +
             table.name + ")";
  }
  const absl::StatusOr<PostgresResult> found = RunText(to_, query);
  if (!found.ok()) return found.status();
  if (PQntuples(found->get()) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("store: the database has records already (table " +
                                       TextAt(found->get(), 0, 0) +
                                       "); an import goes into an empty one, which createdb makes");
}

absl::Status Import::Put(const CommonTable& table, const Columns& columns) {
  absl::StatusOr<SqliteStatement> rows = Rows(table, columns);
  if (!rows.ok()) return rows.status();
  RowStream stream(to_);
  absl::Status status = stream.Begin(table.name, columns.names);
  std::uint64_t count = 0;
  while (status.ok()) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    stream.BeginRow();
    for (int i = 0; i < static_cast<int>(columns.names.size()); ++i) {
      if (rows->ColumnIsNull(i)) {
        stream.PutNull();
      } else if (columns.numbers[static_cast<std::size_t>(i)]) {
        stream.PutInt(rows->ColumnInt(i));
      } else {
        stream.PutBytes(rows->ColumnBytes(i));
      }
    }
    status = stream.EndRow();
    ++count;
  }
  if (status.ok()) status = stream.End();
  if (!status.ok()) return status;
  imported_.rows += count;
  if (table.name == std::string(kJobsTable)) imported_.jobs = count;
  if (table.name == std::string(kRoundsTable)) imported_.rounds = count;
  return absl::OkStatus();
}

// The other way round of what a copy does with it: see postgres_copy.cc.
absl::Status Import::PutMeta() const {
  absl::StatusOr<SqliteStatement> rows =
      SqliteStatement::Prepare(from_, "SELECT key, value FROM meta WHERE key <> 'epoch'");
  if (!rows.ok()) return rows.status();
  bool identified = false;
  while (true) {
    const absl::StatusOr<bool> row = rows->Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    PostgresParameters parameters;
    const bool is_id = rows->ColumnBytes(0) == "server_id";
    identified = identified || is_id;
    if (is_id) {
      parameters.SetText(1, rows->ColumnBytes(1));
    } else {
      parameters.SetText(1, rows->ColumnBytes(0));
      parameters.SetInt(2, rows->ColumnInt(1));
    }
    const absl::Status put =
        RunOnce(to_,
                is_id ? "UPDATE server SET id = $1"
                      : "INSERT INTO meta VALUES ($1, $2)"
                        "  ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                parameters)
            .status();
    if (!put.ok()) return put;
  }
  return identified ? absl::OkStatus()
                    : absl::DataLossError("store: the database has no server id");
}

absl::Status Import::Compare(const CommonTable& table, const Columns& columns) const {
  absl::StatusOr<SqliteStatement> rows = Rows(table, columns);
  if (!rows.ok()) return rows.status();
  absl::Status status =
      RunText(to_, "DECLARE rows NO SCROLL CURSOR FOR SELECT " + columns.Listed() + " FROM " +
                       table.name + " ORDER BY " + table.key)
          .status();
  if (!status.ok()) return status;
  const auto differs = [&](std::uint64_t number) {
    return absl::DataLossError("store: row " + std::to_string(number) + " of " + table.name +
                               " is another one in the database than in the store; nothing was "
                               "imported");
  };
  std::uint64_t number = 0;
  while (true) {
    const absl::StatusOr<PostgresResult> read = RunOnce(to_, kFetchSome, {});
    if (!read.ok()) return read.status();
    const int count = PQntuples(read->get());
    for (int at = 0; at < count; ++at) {
      ++number;
      const absl::StatusOr<bool> row = rows->Step();
      if (!row.ok()) return row.status();
      if (!*row) return differs(number);
      for (int i = 0; i < static_cast<int>(columns.names.size()); ++i) {
        const bool null = PQgetisnull(read->get(), at, i) != 0;
        const bool same = null == rows->ColumnIsNull(i) &&
                          (columns.numbers[static_cast<std::size_t>(i)]
                               ? IntAt(read->get(), at, i) == rows->ColumnInt(i)
                               : BytesAt(read->get(), at, i) == rows->ColumnBytes(i));
        if (!same) return differs(number);
      }
    }
    if (count == 0) break;
  }
  const absl::StatusOr<bool> more = rows->Step();
  if (!more.ok()) return more.status();
  if (*more) return differs(number + 1);
  return RunText(to_, "CLOSE rows").status();
}

absl::StatusOr<Imported> Import::Run() {
  absl::Status status = CheckEmpty();
  for (const CommonTable& table : CommonTables()) {
    if (!status.ok()) return status;
    const absl::StatusOr<Columns> columns = ColumnsOf(to_, table.name);
    if (!columns.ok()) return columns.status();
    status = Put(table, *columns);
    if (status.ok()) status = Compare(table, *columns);
  }
  if (status.ok()) status = PutMeta();
  if (!status.ok()) return status;
  return imported_;
}

// Of whoever had the embedded store; 0: nobody.
absl::StatusOr<std::uint64_t> EpochOf(sqlite3* from) {
  absl::StatusOr<SqliteStatement> query =
      SqliteStatement::Prepare(from, "SELECT value FROM meta WHERE key = 'epoch'");
  if (!query.ok()) return query.status();
  const absl::StatusOr<bool> row = query->Step();
  if (!row.ok()) return row.status();
  return *row ? static_cast<std::uint64_t>(query->ColumnInt(0)) : 0;
}

absl::Status SomebodyLeads(const Term& term) {
  return absl::FailedPreconditionError("store: the coordinator at " + term.address +
                                       " leads; stop those of this database first");
}

absl::StatusOr<Imported> ImportInTerm(sqlite3* from, PGconn* to, std::uint64_t epoch) {
  absl::Status status = BeginWrite(to, epoch);
  if (!status.ok()) return status;
  status = MigratePostgres(to);
  absl::StatusOr<Imported> imported = status.ok() ? Import(from, to).Run() : status;
  if (!imported.ok()) {
    RunText(to, "ROLLBACK").IgnoreError();
    return imported;
  }
  const absl::StatusOr<PostgresResult> committed = RunText(to, "COMMIT");
  if (!committed.ok()) return committed.status();
  if (std::string_view(PQcmdStatus(committed->get())) != "COMMIT") {
    return absl::InternalError("store: the transaction was rolled back");
  }
  return imported;
}

}  // namespace

absl::Status CopyEmbedded(const std::string& from, const std::string& to) {
  const absl::StatusOr<Connection> source = OpenAlone(from);
  if (!source.ok()) return source.status();
  const absl::StatusOr<std::unique_ptr<StoreCopy>> copy = BeginCopy(source->get(), to);
  if (!copy.ok()) return copy.status();
  while (true) {
    const absl::StatusOr<bool> whole = (*copy)->Step();
    if (!whole.ok() || *whole) return whole.status();
  }
}

absl::StatusOr<Imported> ImportIntoShared(const std::string& from, const SharedStoreOptions& to) {
  const absl::StatusOr<Connection> source = OpenAlone(from);
  if (!source.ok()) return source.status();
  const absl::StatusOr<std::uint64_t> former = EpochOf(source->get());
  if (!former.ok()) return former.status();
  absl::StatusOr<std::string> holder = NewHolder();
  if (!holder.ok()) return holder.status();
  const Claim claim{.holder = *std::move(holder), .address = "an import", .lease = to.lease};
  const absl::StatusOr<PostgresConnection> connection = DialStore(
      {.address = to.address, .application = "tactus-coordinator import", .silence = to.lease},
      to.lease);
  if (!connection.ok()) return connection.status();
  PGconn* const target = connection->get();
  const absl::Status status = LayPostgresGround(target);
  if (!status.ok()) return status;
  absl::StatusOr<Term> term = NewestTerm(target);
  if (term.ok() && term->over) term = TakeLead(target, claim);
  if (!term.ok()) return term.status();
  if (term->holder != claim.holder) return SomebodyLeads(*term);
  absl::StatusOr<std::uint64_t> epoch = term->epoch;
  if (*epoch <= *former) epoch = BeginNextTerm(target, claim, term->epoch, *former);
  if (!epoch.ok()) return epoch.status();
  absl::StatusOr<Imported> imported = ImportInTerm(source->get(), target, *epoch);
  EndTerm(target, *epoch).IgnoreError();
  return imported;
}

}  // namespace tactus::store
