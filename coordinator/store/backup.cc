#include "coordinator/store/backup.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr int kPagesAtOnce = 512;  // 2 MiB

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

class PageCopy final : public StoreCopy {
 public:
  explicit PageCopy(std::string path) : path_(std::move(path)) {}
  ~PageCopy() override;

  absl::Status Begin(sqlite3* connection);
  absl::StatusOr<bool> Step() override;

 private:
  std::string Partial() const { return path_ + ".partial"; }
  absl::Status GiveName();

  const std::string path_;
  Connection copy_;                                       // outlives backup_
  std::unique_ptr<sqlite3_backup, FinishBackup> backup_;  // null: not begun, or over
};

PageCopy::~PageCopy() {
  if (backup_ == nullptr) return;
  backup_.reset();
  copy_.reset();
  std::error_code ignored;
  std::filesystem::remove(Partial(), ignored);
}

absl::Status PageCopy::Begin(sqlite3* connection) {
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
  copy_.reset(opened);  // to be closed even when it failed
  if (code != SQLITE_OK) return ConnectionStatus(opened, code, path_);
  // A crash leaves nothing under the last name, so that the copy needs no journal of its own.
  const absl::Status status =
      Execute(opened, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  if (!status.ok()) return status;
  backup_.reset(sqlite3_backup_init(opened, "main", connection, "main"));
  if (backup_ == nullptr) return ConnectionStatus(opened, sqlite3_errcode(opened), path_);
  return absl::OkStatus();
}

absl::StatusOr<bool> PageCopy::Step() {
  errno = 0;  // see ConnectionStatus
  const int code = sqlite3_backup_step(backup_.get(), kPagesAtOnce);
  if (code == SQLITE_OK) return false;
  if (code != SQLITE_DONE) return SqliteStatus(code, errno, path_, sqlite3_errstr(code));
  const absl::Status named = GiveName();
  if (!named.ok()) return named;
  return true;
}

absl::Status PageCopy::GiveName() {
  backup_.reset();
  copy_.reset();
  std::error_code error;
  std::filesystem::rename(Partial(), path_, error);
  if (!error) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::remove(Partial(), ignored);
  return absl::DataLossError(path_ + ": rename: " + error.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(sqlite3* connection, const std::string& path) {
  auto copy = std::make_unique<PageCopy>(path);
  const absl::Status status = copy->Begin(connection);
  if (!status.ok()) return status;
  return copy;
}

}  // namespace tactus::store
