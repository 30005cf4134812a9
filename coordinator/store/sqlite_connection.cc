#include "coordinator/store/sqlite_connection.h"

#include <cerrno>
#include <utility>

namespace tactus::store {
namespace {

absl::StatusCode CodeOf(int code, int system_errno) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_IOERR:  // SQLite calls only ENOSPC full; a quota or a size limit is full as well
      return system_errno == EFBIG || system_errno == EDQUOT ? absl::StatusCode::kResourceExhausted
                                                             : absl::StatusCode::kDataLoss;
    case SQLITE_CANTOPEN:
      return system_errno == ENOENT || system_errno == ENOTDIR
                 ? absl::StatusCode::kNotFound
                 : absl::StatusCode::kPermissionDenied;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status SqliteStatus(int code, int system_errno, std::string_view context,
                          std::string_view detail) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return absl::OkStatus();
  const std::string message =
      std::string(context) + ": " + std::string(detail) + " (sqlite " + std::to_string(code) + ")";
  return absl::Status(CodeOf(code, system_errno), message);
}

absl::Status ConnectionStatus(sqlite3* connection, int code, std::string_view context) {
  // A write that fails within COMMIT leaves SQLite's own record of errno empty.
  const int recorded = sqlite3_system_errno(connection);
  return SqliteStatus(code, recorded != 0 ? recorded : errno, context, sqlite3_errmsg(connection));
}

absl::Status Execute(sqlite3* connection, const std::string& sql) {
  errno = 0;  // see ConnectionStatus
  const int code = sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr);
  return ConnectionStatus(connection, code, "store");
}

absl::StatusOr<SqliteStatement> SqliteStatement::Prepare(sqlite3* connection,
                                                         const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection, sql.c_str(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return ConnectionStatus(connection, code, "store");
  return SqliteStatement(statement);
}

void SqliteStatement::Note(int code) {
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

void SqliteStatement::BindInt(int parameter, std::int64_t value) {
  Note(sqlite3_bind_int64(statement_.get(), parameter, value));
}

void SqliteStatement::BindText(int parameter, const std::string& value) {
  Note(sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(),
                           SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(int parameter, const std::string& value) {
  Note(sqlite3_bind_blob64(statement_.get(), parameter, value.data(), value.size(),
                           SQLITE_TRANSIENT));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  sqlite3* connection = sqlite3_db_handle(statement_.get());
  const int bind_code = std::exchange(bind_code_, SQLITE_OK);
  errno = 0;  // see ConnectionStatus
  const int code = bind_code == SQLITE_OK ? sqlite3_step(statement_.get()) : bind_code;
  if (code == SQLITE_ROW) return true;
  const absl::Status status = ConnectionStatus(connection, code, "store");
  Reset();
  if (!status.ok()) return status;
  return false;
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bind_code_ = SQLITE_OK;
}

std::int64_t SqliteStatement::ColumnInt(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string SqliteStatement::ColumnBytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int length = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr) return {};
  return std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

bool SqliteStatement::ColumnIsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

}  // namespace tactus::store
