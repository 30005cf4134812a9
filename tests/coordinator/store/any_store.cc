#include "tests/coordinator/store/any_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "coordinator/store/postgres_connection.h"

namespace tactus::store {
namespace {

constexpr const char* kVariable = "TACTUS_TEST_POSTGRES";
constexpr const char* kNew = ":memory:";

void RunOnServer(const std::string& address, const std::string& sql) {
  const absl::StatusOr<PostgresConnection> connection = DialPostgres({.address = address});
  ASSERT_TRUE(connection.ok()) << connection.status();
  const absl::Status status = RunText(connection->get(), sql).status();
  EXPECT_TRUE(status.ok()) << status << " " << sql;
}

}  // namespace

bool OnPostgres() { return std::getenv(kVariable) != nullptr; }

std::string PostgresAddressOf(const std::string& path) {
  static int last = 0;
  const std::string name = path == kNew ? std::to_string(::getpid()) + "_" + std::to_string(++last)
                                        : std::to_string(std::hash<std::string>{}(path));
  const std::string server = std::getenv(kVariable);
  RunOnServer(server, "CREATE SCHEMA IF NOT EXISTS test_" + name);
  return server + "&options=-csearch_path%3Dtest_" + name;
}

SharedStoreOptions SharedOptions(const std::string& path) {
  return {.address = PostgresAddressOf(path),
          .leader = "127.0.0.1:7070",
          .lease = Seconds(1),
          .renewal = Seconds(0.1)};
}

absl::StatusOr<std::unique_ptr<Store>> OpenAny(const std::string& path) {
  if (!OnPostgres()) return Store::Open(path);
  const SharedStoreOptions options = SharedOptions(path);
  for (int attempt = 0; attempt < 200; ++attempt) {
    absl::StatusOr<Candidacy> candidacy = TryToLead(options);
    if (!candidacy.ok()) return candidacy.status();
    if (candidacy->store != nullptr) return std::move(candidacy->store);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return absl::UnavailableError("another leads for ever");
}

std::unique_ptr<Store> OpenOrDie(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenAny(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

std::unique_ptr<Store> OpenFileOrDie(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

void RunSql(const std::string& path, const std::string& sql) {
  if (OnPostgres()) {
    std::string text = sql;
    for (std::size_t at = text.find("x'"); at != text.npos; at = text.find("x'", at + 3)) {
      text.replace(at, 2, "'\\x");
    }
    return RunOnServer(PostgresAddressOf(path), text);
  }
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(connection);
}

}  // namespace tactus::store
