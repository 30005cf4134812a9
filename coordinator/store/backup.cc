#include "coordinator/store/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr int kPagesAtOnce = 1024;

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

absl::Status Failed(const std::string& path, const char* what, int code) {
  const std::string message = path + ": " + what + ": " + std::strerror(code);
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return full ? absl::ResourceExhaustedError(message) : absl::DataLossError(message);
}

// Makes what was written to a file or folder durable.
absl::Status Sync(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failed(path, "open", errno);
  const int code = fsync(file) == 0 ? 0 : errno;
  close(file);
  return code == 0 ? absl::OkStatus() : Failed(path, "fsync", code);
}

absl::Status CopyPages(sqlite3* from, sqlite3* to, const std::string& path) {
  const std::unique_ptr<sqlite3_backup, FinishBackup> backup(
      sqlite3_backup_init(to, "main", from, "main"));
  if (backup == nullptr) return ConnectionStatus(to, sqlite3_errcode(to), path);
  int code = SQLITE_OK;
  errno = 0;  // see ConnectionStatus
  while (code == SQLITE_OK) code = sqlite3_backup_step(backup.get(), kPagesAtOnce);
  if (code == SQLITE_DONE) return absl::OkStatus();
  return SqliteStatus(code, errno, path, sqlite3_errstr(code));
}

absl::Status WriteCopy(sqlite3* connection, const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  const Connection copy(opened);  // to be closed even when it failed
  if (code != SQLITE_OK) return ConnectionStatus(opened, code, path);
  // A crash leaves nothing under the last name, so that the copy needs no journal of its own.
  const absl::Status status =
      Execute(opened, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  return status.ok() ? CopyPages(connection, opened, path) : status;
}

}  // namespace

absl::Status BackUp(sqlite3* connection, const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return absl::AlreadyExistsError(path + ": is there already");
  }
  const std::string partial = path + ".partial";
  std::filesystem::remove(partial, error);
  absl::Status status = WriteCopy(connection, partial);
  if (status.ok()) status = Sync(partial);
  if (status.ok()) {
    std::filesystem::rename(partial, path, error);
    if (error) status = Failed(path, "rename", error.value());
  }
  if (!status.ok()) {
    std::filesystem::remove(partial, error);
    return status;
  }
  return Sync(std::filesystem::absolute(path).parent_path().string());
}

}  // namespace tactus::store
