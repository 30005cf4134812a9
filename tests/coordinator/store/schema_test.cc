#include "coordinator/store/schema.h"

#include <gtest/gtest.h>

#include <vector>

namespace tactus::store {
namespace {

constexpr const char* kFirst = "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (7)";
constexpr const char* kSecond = "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 8";
constexpr const char* kBroken = "INSERT INTO a VALUES (1, 2); CREATE NONSENSE";

Connection OpenInMemory() {
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &opened), SQLITE_OK);
  return Connection(opened);
}

std::int64_t QueryInt(sqlite3* connection, const std::string& sql) {
  absl::StatusOr<SqliteStatement> query = SqliteStatement::Prepare(connection, sql);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<bool> row = query->Step();
  EXPECT_TRUE(row.ok() && *row);
  return query->ColumnInt(0);
}

TEST(SchemaTest, StepsThatWereNotSeenRunInOrder) {
  const Connection connection = OpenInMemory();
  const std::vector<const char*> old_steps = {kFirst};
  const std::vector<const char*> new_steps = {kFirst, kSecond};
  ASSERT_TRUE(Migrate(connection.get(), old_steps).ok());

  const absl::Status status = Migrate(connection.get(), new_steps);

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(QueryInt(connection.get(), "PRAGMA user_version"), 2);
  EXPECT_EQ(QueryInt(connection.get(), "SELECT x + y FROM a"), 15);
}

TEST(SchemaTest, AStepRunsOnce) {
  const Connection connection = OpenInMemory();
  const std::vector<const char*> steps = {kFirst, kSecond};

  EXPECT_TRUE(Migrate(connection.get(), steps).ok());
  EXPECT_TRUE(Migrate(connection.get(), steps).ok());

  EXPECT_EQ(QueryInt(connection.get(), "SELECT count(*) FROM a"), 1);
}

TEST(SchemaTest, AStepThatFailsLeavesTheFormerVersionWhole) {
  const Connection connection = OpenInMemory();
  const std::vector<const char*> steps = {kFirst, kSecond, kBroken};

  EXPECT_FALSE(Migrate(connection.get(), steps).ok());

  EXPECT_EQ(QueryInt(connection.get(), "PRAGMA user_version"), 2);
  EXPECT_EQ(QueryInt(connection.get(), "SELECT count(*) FROM a"), 1);
}

TEST(SchemaTest, ANewerVersionIsRefused) {
  const Connection connection = OpenInMemory();
  const std::vector<const char*> newer = {kFirst, kSecond};
  const std::vector<const char*> older = {kFirst};
  ASSERT_TRUE(Migrate(connection.get(), newer).ok());

  EXPECT_EQ(Migrate(connection.get(), older).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SqliteStatusTest, ResultCodesBecomeTheirStatuses) {
  struct Case {
    int code = 0;
    int system_errno = 0;
    absl::StatusCode expected = absl::StatusCode::kOk;
  };
  const Case cases[] = {
      {SQLITE_OK, 0, absl::StatusCode::kOk},
      {SQLITE_ROW, 0, absl::StatusCode::kOk},
      {SQLITE_DONE, 0, absl::StatusCode::kOk},
      {SQLITE_BUSY, 0, absl::StatusCode::kUnavailable},
      {SQLITE_BUSY_SNAPSHOT, 0, absl::StatusCode::kUnavailable},
      {SQLITE_LOCKED, 0, absl::StatusCode::kUnavailable},
      {SQLITE_CONSTRAINT_UNIQUE, 0, absl::StatusCode::kAlreadyExists},
      {SQLITE_FULL, ENOSPC, absl::StatusCode::kResourceExhausted},
      {SQLITE_IOERR_WRITE, EDQUOT, absl::StatusCode::kResourceExhausted},
      {SQLITE_IOERR_WRITE, EFBIG, absl::StatusCode::kResourceExhausted},
      {SQLITE_IOERR_FSYNC, EIO, absl::StatusCode::kDataLoss},
      {SQLITE_CORRUPT, 0, absl::StatusCode::kDataLoss},
      {SQLITE_NOTADB, 0, absl::StatusCode::kDataLoss},
      {SQLITE_CANTOPEN, ENOENT, absl::StatusCode::kNotFound},
      {SQLITE_CANTOPEN, EACCES, absl::StatusCode::kPermissionDenied},
      {SQLITE_READONLY, 0, absl::StatusCode::kPermissionDenied},
      {SQLITE_MISUSE, 0, absl::StatusCode::kInternal},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(SqliteStatus(one.code, one.system_errno, "store", "detail").code(), one.expected)
        << one.code << " " << one.system_errno;
  }
}

}  // namespace
}  // namespace tactus::store
