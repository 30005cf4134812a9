#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sql_functions.h"
#include "coordinator/store/sql_store.h"
#include "coordinator/store/sqlite_database.h"

namespace tactus::store {
namespace {

constexpr const char* kInMemory = ":memory:";  // as SQLite has it
constexpr int kBusyTimeoutMs = 1000;
constexpr std::int64_t kRewrittenMax = 256 << 20;  // bytes; about a second

// Exclusive before the first access: no second process, and no shared memory beside the file.
// auto_vacuum counts only in a file that is still empty. 32 MiB of cache hold the indices of some
// 100,000 jobs; the log goes back to 64 MiB after a longer transaction.
constexpr const char* kSettings =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA auto_vacuum = INCREMENTAL;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA cache_size = -32768;"
    "PRAGMA journal_size_limit = 67108864;"
    "BEGIN EXCLUSIVE; COMMIT";

// SQLite tries once more without creating the file, and that attempt says "not found" where the
// folder is there but not writable.
absl::Status CannotOpen(const std::string& path, const absl::Status& status) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  if (absl::IsNotFound(status) && std::filesystem::is_directory(folder, error)) {
    return absl::PermissionDeniedError(path + ": the folder is not writable");
  }
  return status;
}

// What is in it is nobody else's business, whatever the umask is and whoever made the folder.
// SQLite gives its log the mode of the file. By its path where it is there: to close a descriptor
// of it would let go of the locks of whoever has it open in this process.
void KeepPrivate(const std::string& path) {
  if (path == kInMemory) return;
  const Descriptor made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made.open()) return;
  for (const std::string& name : {path, path + "-wal"}) {
    struct stat found {};
    if (::stat(name.c_str(), &found) == 0) ::chmod(name.c_str(), found.st_mode & 0700);
  }
}

absl::StatusOr<Connection> Connect(const std::string& path) {
  KeepPrivate(path);
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Connection connection(opened);  // to be closed even when it failed
  if (code != SQLITE_OK) return CannotOpen(path, ConnectionStatus(opened, code, path));
  if (sqlite3_db_readonly(opened, "main") == 1) {
    return absl::PermissionDeniedError(path + ": not writable");
  }
  return connection;
}

// A number that a query of one row gives.
absl::StatusOr<std::int64_t> Ask(sqlite3* connection, const char* sql) {
  absl::StatusOr<SqliteStatement> query = SqliteStatement::Prepare(connection, sql);
  if (!query.ok()) return query.status();
  const absl::StatusOr<bool> row = query->Step();
  if (!row.ok()) return row.status();
  return *row ? query->ColumnInt(0) : 0;
}

// A file of before the third schema cannot give space back unless it is written anew, once. It
// works as well where that fails or the file is large: free pages are used again.
absl::Status AllowShrinking(sqlite3* connection) {
  const absl::StatusOr<std::int64_t> kind = Ask(connection, "PRAGMA auto_vacuum");
  if (!kind.ok() || *kind != 0) return kind.status();
  const absl::StatusOr<std::int64_t> pages = Ask(connection, "PRAGMA page_count");
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<std::int64_t> page_size = Ask(connection, "PRAGMA page_size");
  if (!page_size.ok()) return page_size.status();
  if (*pages > kRewrittenMax / std::max<std::int64_t>(1, *page_size)) return absl::OkStatus();
  Execute(connection, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM").IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ServerId(sqlite3* connection) {
  absl::StatusOr<SqliteStatement> query =
      SqliteStatement::Prepare(connection, "SELECT value FROM meta WHERE key = 'server_id'");
  if (!query.ok()) return query.status();
  const absl::StatusOr<bool> row = query->Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::DataLossError("store: the database has no server id");
  return query->ColumnBytes(0);
}

absl::Status Annotate(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), path + ": " + std::string(status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  absl::StatusOr<Connection> connection = Connect(path);
  if (!connection.ok()) return connection.status();
  sqlite3* const db = connection->get();
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
  absl::Status status = AddSqlFunctions(db);
  if (status.ok()) status = Execute(db, kSettings);
  if (status.ok()) status = Migrate(db, SchemaSteps());
  if (status.ok()) status = AllowShrinking(db);
  if (!status.ok()) return Annotate(path, status);
  absl::StatusOr<std::string> server_id = ServerId(db);
  if (!server_id.ok()) return Annotate(path, server_id.status());
  return std::make_unique<SqlStore>(std::make_unique<SqliteDatabase>(*std::move(connection)),
                                    *std::move(server_id));
}

}  // namespace tactus::store
