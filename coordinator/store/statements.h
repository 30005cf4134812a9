// The statements of one database, prepared when they are first used and kept.

#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/check.h"
#include "coordinator/store/database.h"

namespace tactus::store {

// A database's integers are signed; our numbers stay below 2^63.
inline std::int64_t Signed(std::uint64_t value) {
  TACTUS_CHECK(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  return static_cast<std::int64_t>(value);
}

// A parameter that is bound as a blob; std::string is bound as text, nullptr as NULL.
struct Blob {
  const std::string& bytes;
};

inline void BindOne(Statement& statement, int parameter, std::int64_t value) {
  statement.BindInt(parameter, value);
}
inline void BindOne(Statement& statement, int parameter, const std::string& value) {
  statement.BindText(parameter, value);
}
inline void BindOne(Statement& statement, int parameter, Blob value) {
  statement.BindBlob(parameter, value.bytes);
}

// Calls `read` (const Statement& -> absl::Status) for each row of a bound statement until it fails.
template <typename Read>
absl::Status ForEachRow(Statement& query, const Read& read) {
  while (true) {
    const absl::StatusOr<bool> row = query.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    const absl::Status status = read(query);
    if (!status.ok()) {
      query.Reset();
      return status;
    }
  }
}

// One thread. Must not outlive the database.
class Statements {
 public:
  explicit Statements(Database& database) : database_(database) {}

  Database& database() const { return database_; }

  // The statement for `sql`, a constant of the program, with its parameters bound from 1 on.
  template <typename... Values>
  absl::StatusOr<Statement*> Bind(const char* sql, const Values&... values) {
    absl::StatusOr<Statement*> statement = Prepared(sql);
    if (!statement.ok()) return statement;
    int parameter = 0;
    (BindOne(**statement, ++parameter, values), ...);
    return statement;
  }

  // Runs a statement that gives no rows.
  template <typename... Values>
  absl::Status Run(const char* sql, const Values&... values) {
    const absl::StatusOr<Statement*> statement = Bind(sql, values...);
    if (!statement.ok()) return statement.status();
    return (*statement)->Step().status();
  }

  // The first column of the first row; `otherwise` when there is no row.
  template <typename... Values>
  absl::StatusOr<std::int64_t> Number(const char* sql, std::int64_t otherwise,
                                      const Values&... values) {
    const absl::StatusOr<Statement*> statement = Bind(sql, values...);
    if (!statement.ok()) return statement.status();
    const absl::StatusOr<bool> row = (*statement)->Step();
    if (!row.ok()) return row.status();
    if (!*row) return otherwise;
    const std::int64_t number = (*statement)->ColumnInt(0);
    (*statement)->Reset();
    return number;
  }

  // Runs `body` (-> absl::Status) in one transaction: all of it is durable when this returns ok,
  // nothing is there otherwise.
  template <typename Body>
  absl::Status Transact(const Body& body) {
    absl::Status status = database_.Begin();
    if (!status.ok()) return status;
    status = body();
    if (status.ok()) status = database_.Commit();
    if (!status.ok()) database_.Rollback();
    return status;
  }

 private:
  absl::StatusOr<Statement*> Prepared(const char* sql) {
    const auto found = prepared_.find(sql);
    if (found != prepared_.end()) return found->second.get();
    absl::StatusOr<std::unique_ptr<Statement>> made = database_.Prepare(sql, Database::Use::kOften);
    if (!made.ok()) return made.status();
    return prepared_.emplace(sql, *std::move(made)).first->second.get();
  }

  Database& database_;
  std::unordered_map<std::string_view, std::unique_ptr<Statement>>
      prepared_;  // its keys are constants
};

}  // namespace tactus::store
