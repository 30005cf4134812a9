#include "coordinator/store/sqlite_database.h"

#include <algorithm>

#include "coordinator/store/backup.h"

namespace tactus::store {
namespace {

constexpr std::int64_t kFreePagesKept = 256;
constexpr std::int64_t kPagesReturned = 512;  // in a piece

// All of it is done in the statement's first step.
constexpr const char* kBeginEpoch =
    "INSERT INTO meta VALUES ('epoch', ?1 + 1)"
    "  ON CONFLICT (key) DO UPDATE SET value = max(value, ?1) + 1 RETURNING value";

}  // namespace

absl::StatusOr<std::unique_ptr<Statement>> SqliteDatabase::Prepare(const std::string& sql, Use) {
  absl::StatusOr<SqliteStatement> made = SqliteStatement::Prepare(connection_.get(), sql);
  if (!made.ok()) return made.status();
  return std::make_unique<SqliteStatement>(*std::move(made));
}

void SqliteDatabase::Rollback() {
  if (sqlite3_get_autocommit(connection_.get()) != 0) return;
  Execute(connection_.get(), "ROLLBACK").IgnoreError();
}

absl::StatusOr<std::uint64_t> SqliteDatabase::BeginEpoch(std::uint64_t at_least) {
  const absl::StatusOr<std::int64_t> epoch =
      statements_.Number(kBeginEpoch, 0, static_cast<std::int64_t>(at_least));
  if (!epoch.ok()) return epoch.status();
  return static_cast<std::uint64_t>(*epoch);
}

absl::StatusOr<std::optional<std::int64_t>> SqliteDatabase::BytesUsed() {
  const absl::StatusOr<std::int64_t> page_size = statements_.Number("PRAGMA page_size", 0);
  if (!page_size.ok()) return page_size.status();
  const absl::StatusOr<std::int64_t> pages = statements_.Number("PRAGMA page_count", 0);
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<std::int64_t> free = statements_.Number("PRAGMA freelist_count", 0);
  if (!free.ok()) return free.status();
  return std::optional<std::int64_t>((*pages - *free) * *page_size);
}

// Pages that are free are used again first; the file shrinks only by what is far more than that.
absl::StatusOr<bool> SqliteDatabase::ReturnSpace() {
  const absl::StatusOr<std::int64_t> kind = statements_.Number("PRAGMA auto_vacuum", 0);
  if (!kind.ok()) return kind.status();
  if (*kind != 2) return false;  // 2: incremental
  const absl::StatusOr<std::int64_t> pages = statements_.Number("PRAGMA page_count", 0);
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<std::int64_t> free = statements_.Number("PRAGMA freelist_count", 0);
  if (!free.ok()) return free.status();
  const std::int64_t excess = *free - std::max(kFreePagesKept, *pages / 10);
  if (excess <= 0) return false;
  const absl::Status status =
      Execute(connection_.get(), "PRAGMA incremental_vacuum(" +
                                     std::to_string(std::min(excess, kPagesReturned)) + ")");
  if (!status.ok()) return status;
  return excess > kPagesReturned;
}

absl::StatusOr<std::vector<std::string>> SqliteDatabase::CheckFile() {
  const absl::StatusOr<Statement*> query = statements_.Bind("PRAGMA integrity_check(100)");
  if (!query.ok()) return query.status();
  std::vector<std::string> problems;
  const absl::Status status = ForEachRow(**query, [&](const Statement& row) {
    std::string line = row.ColumnBytes(0);
    if (line != "ok") problems.push_back(std::move(line));
    return absl::OkStatus();
  });
  // What it found before it could go no further is the better part.
  if (!status.ok()) problems.emplace_back(status.message());
  return problems;
}

absl::StatusOr<std::unique_ptr<StoreCopy>> SqliteDatabase::BeginCopy(const std::string& path) {
  return store::BeginCopy(connection_.get(), path);
}

}  // namespace tactus::store
