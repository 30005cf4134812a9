// An embedded store that is being written, under another name until it is whole.

#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {

// Destroyed before it has its name, it leaves nothing. One thread.
class PartialCopy {
 public:
  explicit PartialCopy(std::string path) : path_(std::move(path)) {}
  ~PartialCopy();
  PartialCopy(const PartialCopy&) = delete;
  PartialCopy& operator=(const PartialCopy&) = delete;

  // Begins an empty file, in the place of one that a crash has left, without a journal: a crash
  // leaves nothing under the last name. Errors: AlreadyExists, `path` is there; of SQLite.
  absl::Status Open();

  const std::string& path() const { return path_; }
  sqlite3* get() const { return connection_.get(); }  // null: not opened, or whole

  // It is whole: closes it and gives it its name. Errors: DataLoss, it cannot have it and is gone.
  absl::Status GiveName();

 private:
  std::string Partial() const { return path_ + ".partial"; }

  const std::string path_;
  Connection connection_;
};

}  // namespace tactus::store
