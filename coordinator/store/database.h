// What the store asks of a database: statements and transactions. SQLite and PostgreSQL have it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace tactus::store {

// One prepared statement. Bind in order, step, then Reset. One thread; outlived by its database.
class Statement {
 public:
  virtual ~Statement() = default;

  // Parameters count from 1. Blobs and texts are copied.
  virtual void BindInt(int parameter, std::int64_t value) = 0;
  virtual void BindText(int parameter, const std::string& value) = 0;
  virtual void BindBlob(int parameter, const std::string& value) = 0;

  // True: a row is there to be read. False: the statement is done, and was reset.
  // Any error resets the statement too.
  virtual absl::StatusOr<bool> Step() = 0;
  virtual void Reset() = 0;

  // Columns count from 0; valid until the next Step or Reset. NULL is 0, and empty.
  virtual std::int64_t ColumnInt(int column) const = 0;
  virtual std::string ColumnBytes(int column) const = 0;
};

// One thread. The store's statements are written once, in what both dialects have:
//   ?1, ?2   parameters; a plain ? is the one behind the last
//   max(a, b) of two numbers, job_label(labels, key): functions that each database is given
//   ON CONFLICT (...) DO UPDATE, never OR REPLACE; coalesce, never ifnull; a subquery has a name,
//   and so has a column that is read where a row is put in the place of another (names.number)
class Database {
 public:
  virtual ~Database() = default;

  enum class Use { kOften, kOnce };
  virtual absl::StatusOr<std::unique_ptr<Statement>> Prepare(const std::string& sql, Use use) = 0;

  // What is written is written between Begin and Commit, and is durable when Commit returns ok.
  // Errors: Aborted, another coordinator leads by now; else as Store::Write has them.
  virtual absl::Status Begin() = 0;
  virtual absl::Status Commit() = 0;
  // Does nothing where there is no transaction, which some errors have ended already.
  virtual void Rollback() = 0;

  // Rows that the last statement wrote or deleted.
  virtual std::int64_t changes() const = 0;

  // Store::BeginEpoch's number.
  virtual absl::StatusOr<std::uint64_t> BeginEpoch(std::uint64_t at_least) = 0;

  // Of what is there, without what is free to be used again; unset: the database cannot say.
  virtual absl::StatusOr<std::optional<std::int64_t>> BytesUsed() = 0;
  // Gives back a bounded piece of what is free, where that is far more than is used again. True:
  // there is more.
  virtual absl::StatusOr<bool> ReturnSpace() = 0;

  // Store::Leads.
  virtual bool Leads() const { return true; }

  // What the database finds of its own file, one line a problem.
  virtual absl::StatusOr<std::vector<std::string>> CheckFile() = 0;

  // Store::BeginCopy.
  virtual absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(const std::string& path) = 0;
};

}  // namespace tactus::store
