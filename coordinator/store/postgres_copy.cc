#include "coordinator/store/postgres_copy.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/store/partial_copy.h"
#include "coordinator/store/postgres_schema.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sql_functions.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr Oid kByteaType = 17;

struct Source {
  std::string table;
  std::string query;
};

// What is not a table of PostgreSQL's is written as the embedded one has it.
std::vector<Source> Sources() {
  std::vector<Source> sources;
  for (const CommonTable& table : CommonTables()) {
    sources.push_back({table.name, std::string("SELECT * FROM ") + table.name});
  }
  sources.push_back({"meta", "SELECT * FROM meta"});
  sources.push_back({"meta",
                     "SELECT 'epoch' AS key, max(epoch) AS value FROM terms"
                     "  HAVING max(epoch) IS NOT NULL"});
  sources.push_back({"meta", "SELECT 'server_id' AS key, id AS value FROM server"});
  return sources;
}

constexpr const char* kFetch = "FETCH 500 FROM rows";

class TableCopy final : public StoreCopy {
 public:
  TableCopy(PostgresConnection source, std::string path)
      : source_(std::move(source)), target_(std::move(path)) {}

  absl::Status Begin();
  absl::StatusOr<bool> Step() override;

 private:
  absl::Status PutRows(const PGresult* rows);

  const PostgresConnection source_;
  PartialCopy target_;
  const std::vector<Source> sources_ = Sources();
  std::size_t table_ = 0;  // of those, which is copied now
  bool cursor_open_ = false;
};

absl::Status TableCopy::Begin() {
  absl::Status status = target_.Open();
  if (status.ok()) status = AddSqlFunctions(target_.get());
  if (status.ok()) status = Execute(target_.get(), "PRAGMA auto_vacuum = INCREMENTAL");
  if (status.ok()) status = Migrate(target_.get(), SchemaSteps());
  if (!status.ok()) return status;
  return RunText(source_.get(), "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").status();
}

absl::StatusOr<bool> TableCopy::Step() {
  if (!cursor_open_) {
    const absl::Status declared =
        RunText(source_.get(), "DECLARE rows NO SCROLL CURSOR FOR " + sources_[table_].query)
            .status();
    if (!declared.ok()) return declared;
    cursor_open_ = true;
  }
  const absl::StatusOr<PostgresResult> rows = RunOnce(source_.get(), kFetch, {});
  if (!rows.ok()) return rows.status();
  const absl::Status put = PutRows(rows->get());
  if (!put.ok()) return put;
  if (PQntuples(rows->get()) > 0) return false;
  const absl::Status closed = RunText(source_.get(), "CLOSE rows").status();
  if (!closed.ok()) return closed;
  cursor_open_ = false;
  if (++table_ < sources_.size()) return false;
  const absl::Status finished = target_.GiveName();
  if (!finished.ok()) return finished;
  return true;
}

absl::Status TableCopy::PutRows(const PGresult* rows) {
  std::string columns;
  std::string marks;
  const int count = PQnfields(rows);
  for (int column = 0; column < count; ++column) {
    columns += std::string(column == 0 ? "" : ", ") + PQfname(rows, column);
    marks += column == 0 ? "?" : ", ?";
  }
  absl::StatusOr<SqliteStatement> insert =
      SqliteStatement::Prepare(target_.get(), "INSERT OR REPLACE INTO " + sources_[table_].table +
                                                  " (" + columns + ") VALUES (" + marks + ")");
  if (!insert.ok()) return insert.status();
  absl::Status status = Execute(target_.get(), "BEGIN");
  for (int row = 0; row < PQntuples(rows) && status.ok(); ++row) {
    for (int column = 0; column < count; ++column) {
      if (PQgetisnull(rows, row, column) != 0) continue;  // unbound is NULL
      const Oid type = PQftype(rows, column);
      if (IsNumber(rows, column)) {
        insert->BindInt(column + 1, IntAt(rows, row, column));
      } else if (type == kByteaType) {
        insert->BindBlob(column + 1, BytesAt(rows, row, column));
      } else {
        insert->BindText(column + 1, BytesAt(rows, row, column));
      }
    }
    status = insert->Step().status();
  }
  return status.ok() ? Execute(target_.get(), "COMMIT") : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreCopy>> BeginPostgresCopy(const PostgresDial& dial,
                                                             const std::string& path) {
  absl::StatusOr<PostgresConnection> source = DialPostgres(dial);
  if (!source.ok()) return source.status();
  auto copy = std::make_unique<TableCopy>(*std::move(source), path);
  const absl::Status status = copy->Begin();
  if (!status.ok()) return status;
  return copy;
}

}  // namespace tactus::store
