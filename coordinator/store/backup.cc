#include "coordinator/store/backup.h"

#include <cerrno>
#include <utility>

#include "coordinator/store/partial_copy.h"
#include "coordinator/store/sqlite_connection.h"

namespace tactus::store {
namespace {

constexpr int kPagesAtOnce = 512;  // 2 MiB

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

class PageCopy final : public StoreCopy {
 public:
  explicit PageCopy(std::string path) : copy_(std::move(path)) {}

  absl::Status Begin(sqlite3* connection);
  absl::StatusOr<bool> Step() override;

 private:
  PartialCopy copy_;                                      // outlives backup_
  std::unique_ptr<sqlite3_backup, FinishBackup> backup_;  // null: not begun, or over
};

absl::Status PageCopy::Begin(sqlite3* connection) {
  const absl::Status opened = copy_.Open();
  if (!opened.ok()) return opened;
  backup_.reset(sqlite3_backup_init(copy_.get(), "main", connection, "main"));
  if (backup_ != nullptr) return absl::OkStatus();
  return ConnectionStatus(copy_.get(), sqlite3_errcode(copy_.get()), copy_.path());
}

absl::StatusOr<bool> PageCopy::Step() {
  errno = 0;  // see ConnectionStatus
  const int code = sqlite3_backup_step(backup_.get(), kPagesAtOnce);
  if (code == SQLITE_OK) return false;
  if (code != SQLITE_DONE) return SqliteStatus(code, errno, copy_.path(), sqlite3_errstr(code));
  backup_.reset();
  const absl::Status named = copy_.GiveName();
  if (!named.ok()) return named;
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(sqlite3* connection, const std::string& path) {
  auto copy = std::make_unique<PageCopy>(path);
  const absl::Status status = copy->Begin(connection);
  if (!status.ok()) return status;
  return copy;
}

}  // namespace tactus::store
