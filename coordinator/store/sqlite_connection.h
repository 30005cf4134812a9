// SQLite with owners and statuses: the only place that calls its C interface.

#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/database.h"

namespace tactus::store {

// The status for a result code of SQLite (primary or extended); ok for SQLITE_OK, SQLITE_ROW,
// SQLITE_DONE.
//   code          what SQLite returned
//   system_errno  sqlite3_system_errno of the connection, 0 when there is none
//   context       what was being done, first in the message
//   detail        SQLite's own words
absl::Status SqliteStatus(int code, int system_errno, std::string_view context,
                          std::string_view detail);

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using Connection = std::unique_ptr<sqlite3, CloseConnection>;

// The status of the latest call on `connection`, which returned `code`.
absl::Status ConnectionStatus(sqlite3* connection, int code, std::string_view context);

// Runs statements without parameters and drops their rows.
absl::Status Execute(sqlite3* connection, const std::string& sql);

// A statement of SQLite's.
class SqliteStatement final : public Statement {
 public:
  static absl::StatusOr<SqliteStatement> Prepare(sqlite3* connection, const std::string& sql);

  void BindInt(int parameter, std::int64_t value) override;
  void BindText(int parameter, const std::string& value) override;
  void BindBlob(int parameter, const std::string& value) override;
  absl::StatusOr<bool> Step() override;
  void Reset() override;
  std::int64_t ColumnInt(int column) const override;
  std::string ColumnBytes(int column) const override;
  bool ColumnIsNull(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  // Remembers the first bind that failed (a value too big, no memory); Step reports it.
  void Note(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_code_ = SQLITE_OK;
};

}  // namespace tactus::store
