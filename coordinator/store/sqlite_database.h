// SQLite as the store's database.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/database.h"
#include "coordinator/store/sqlite_connection.h"
#include "coordinator/store/statements.h"

namespace tactus::store {

class SqliteDatabase final : public Database {
 public:
  // A connection with AddSqlFunctions, brought up to date.
  explicit SqliteDatabase(Connection connection) : connection_(std::move(connection)) {}

  absl::StatusOr<std::unique_ptr<Statement>> Prepare(const std::string& sql, Use use) override;
  absl::Status Begin() override { return statements_.Run("BEGIN IMMEDIATE"); }
  absl::Status Commit() override { return statements_.Run("COMMIT"); }
  void Rollback() override;
  std::int64_t changes() const override { return sqlite3_changes64(connection_.get()); }
  absl::StatusOr<std::uint64_t> BeginEpoch(std::uint64_t at_least) override;
  absl::StatusOr<std::optional<std::int64_t>> BytesUsed() override;
  absl::StatusOr<bool> ReturnSpace() override;
  absl::StatusOr<std::vector<std::string>> CheckFile() override;
  absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(const std::string& path) override;

 private:
  const Connection connection_;  // outlives the statements
  Statements statements_{*this};
};

}  // namespace tactus::store
