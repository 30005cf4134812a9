#include "coordinator/store/postgres_copy.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "coordinator/store/partial_copy.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sql_functions.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr Oid kInt8Type = 20;
constexpr Oid kByteaType = 17;

// Of both databases, with the columns of both. What is not a table of PostgreSQL's is written as
// the embedded one has it.
struct Source {
  const char* table;
  const char* query;
};
constexpr Source kSources[] = {
    {"jobs", "SELECT * FROM jobs"},
    {"rounds", "SELECT * FROM rounds"},
    {"decisions", "SELECT * FROM decisions"},
    {"validations", "SELECT * FROM validations"},
    {"nodes", "SELECT * FROM nodes"},
    {"forgotten", "SELECT * FROM forgotten"},
    {"thinning", "SELECT * FROM thinning"},
    {"set_aside", "SELECT * FROM set_aside"},
    {"memories", "SELECT * FROM memories"},
    {"priors", "SELECT * FROM priors"},
    {"names", "SELECT * FROM names"},
    {"meta", "SELECT * FROM meta"},
    {"meta", "SELECT 'epoch' AS key, max(epoch) AS value FROM terms HAVING max(epoch) IS NOT NULL"},
    {"meta", "SELECT 'server_id' AS key, id AS value FROM server"},
};
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
  std::size_t table_ = 0;  // of kSources, which is copied now
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
        RunText(source_.get(),
                std::string("DECLARE rows NO SCROLL CURSOR FOR ") + kSources[table_].query)
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
  if (++table_ < std::size(kSources)) return false;
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
  absl::StatusOr<SqliteStatement> insert = SqliteStatement::Prepare(
      target_.get(), std::string("INSERT OR REPLACE INTO ") + kSources[table_].table + " (" +
                         columns + ") VALUES (" + marks + ")");
  if (!insert.ok()) return insert.status();
  absl::Status status = Execute(target_.get(), "BEGIN");
  for (int row = 0; row < PQntuples(rows) && status.ok(); ++row) {
    for (int column = 0; column < count; ++column) {
      if (PQgetisnull(rows, row, column) != 0) continue;  // unbound is NULL
      const Oid type = PQftype(rows, column);
      if (type == kInt8Type) {
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
