#include "coordinator/store/partial_copy.h"

#include <sqlite3.h>

#include <filesystem>
#include <system_error>

namespace tactus::store {

PartialCopy::~PartialCopy() {
  if (connection_ == nullptr) return;
  connection_.reset();
  std::error_code ignored;
  std::filesystem::remove(Partial(), ignored);
}

absl::Status PartialCopy::Open() {
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    return absl::AlreadyExistsError(path_ + ": is there already");
  }
  std::filesystem::remove(Partial(), error);
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      Partial().c_str(), &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  connection_.reset(opened);  // to be closed even when it failed
  if (code != SQLITE_OK) return ConnectionStatus(opened, code, path_);
  return Execute(opened, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
}

absl::Status PartialCopy::GiveName() {
  connection_.reset();
  std::error_code error;
  std::filesystem::rename(Partial(), path_, error);
  if (!error) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::remove(Partial(), ignored);
  return absl::DataLossError(path_ + ": rename: " + error.message());
}

}  // namespace tactus::store
