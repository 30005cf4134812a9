#include "coordinator/backup/backups.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "coordinator/files/state_folder.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/options.h"

namespace tactus::backup {
namespace {

// As far as the links on the way are known; ends with a slash.
std::string Canonical(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  return (std::filesystem::weakly_canonical(whole, ignored) / "").lexically_normal().string();
}

void Warn(const std::string& folder, const absl::Status& status) {
  runtime::Logger("backup")->warn("backup failed folder={} error={}", runtime::Quoted(folder),
                                  runtime::Quoted(status.ToString()));
}

}  // namespace

absl::Status BackupOptions::Validate(const std::string& state_folder) const {
  if (every != Duration::zero() && every < kEveryMin) {
    return absl::InvalidArgumentError(
        "backup-every: found " + runtime::FormatDuration(std::max(Duration(0), every)) +
        ", allowed is off, or " + runtime::FormatDuration(kEveryMin) + " and more");
  }
  if (keep < 1 || keep > kKeepMax) {
    return absl::InvalidArgumentError("backup-keep: found " + std::to_string(keep) +
                                      ", allowed are 1 to " + std::to_string(kKeepMax));
  }
  if (every == Duration::zero() && folder.empty()) return absl::OkStatus();
  if (folder.empty()) {
    return absl::InvalidArgumentError(
        "backup-dir: is empty; with backup-every, give a folder on another disk");
  }
  if (every == Duration::zero()) {
    return absl::InvalidArgumentError(
        "backup-every: is off; with backup-dir, give a time such as 6h");
  }
  if (Canonical(folder).starts_with(Canonical(state_folder))) {
    return absl::InvalidArgumentError("backup-dir: found " + folder + ", within state-dir " +
                                      state_folder + ", which may be lost as a whole");
  }
  return absl::OkStatus();
}

Duration WaitOfFirst(const BackupOptions& options, std::optional<job::WallTime> newest,
                     job::WallTime now) {
  if (!newest.has_value()) return options.first;
  const Duration age(now - *newest);
  return std::max(options.first, std::min(options.every - age, options.every));
}

void Backups::Start() {
  if (around_.options.every == Duration::zero()) return;
  around_.backups.Post([this] {
    folder_.RemoveLeftovers();
    ShowNewest();
    timer_.emplace(around_.backups);
    timer_->After(WaitOfFirst(around_.options, folder_.NewestTime(), runtime::WallNow()),
                  [this] { Begin(); });
  });
}

void Backups::Stop() {
  stopping_ = true;
  around_.backups.RunAndWait([this] { timer_.reset(); });
}

std::string Backups::CopyPath() const { return around_.state_folder + "/" + service::kCopyName; }

void Backups::Begin() {
  began_ = runtime::Now();
  if (around_.copy_slot->exchange(true)) {
    timer_->After(around_.options.busy, [this] { Begin(); });
    return;
  }
  has_copy_ = true;
  around_.files.Post([this] {
    // From before the copy is whole: nothing that it names goes any more.
    around_.blobs.SetKeepAll(true);
    CopyDatabase();
  });
}

// Within the state folder: the storage thread is not to wait for another disk.
void Backups::CopyDatabase() {
  service::CopyStore({.storage = around_.storage,
                      .store = around_.store,
                      .path = CopyPath(),
                      .cancelled = [this] { return stopping_.load(); }},
                     [this](const absl::Status& copied) {
                       around_.backups.Post([this, copied] { OnCopied(copied); });
                     });
}

absl::StatusOr<BackupFolder::Report> Backups::Write() {
  return folder_.Write({.now = runtime::WallNow(),
                        .state_folder = around_.state_folder,
                        .fetch = around_.blobs.Source(),
                        .copy_read = [this] { GiveBackCopy(); },
                        .cancelled = [this] { return stopping_.load(); }});
}

void Backups::OnCopied(const absl::Status& copied) {
  const absl::StatusOr<BackupFolder::Report> report = copied.ok() ? Write() : copied;
  GiveBackCopy();
  around_.files.Post([this] { around_.blobs.SetKeepAll(false); });
  if (!timer_.has_value() || stopping_) return;
  Say(report);
  ShowNewest();
  WaitForNext();
}

// Others wait for it, and the blobs may take hours.
void Backups::GiveBackCopy() {
  if (!std::exchange(has_copy_, false)) return;
  service::RemoveCopy(CopyPath());
  *around_.copy_slot = false;
}

void Backups::Say(const absl::StatusOr<BackupFolder::Report>& report) {
  const auto log = runtime::Logger("backup");
  if (!report.ok() || !report->missing.empty()) around_.metrics.CountBackupFailure();
  if (!report.ok()) return Warn(around_.options.folder, report.status());
  log->info("backup made name={} files_kept={} files_copied={} bytes_copied={} seconds={:.1f}",
            report->name, report->files_kept, report->files_copied, report->bytes_copied,
            ToSeconds(runtime::Now() - began_));
  if (!report->missing.empty()) {
    log->warn("backup lacks files name={} files={} first={}", report->name, report->missing.size(),
              runtime::Quoted(report->missing.front()));
  }
  if (!report->removed.ok()) {
    log->warn("old backup not removed error={}", runtime::Quoted(report->removed.ToString()));
  }
}

void Backups::ShowNewest() {
  const job::WallTime newest = folder_.NewestCompleteTime().value_or(0);
  around_.metrics.SetBackups(around_.options.every, ToSeconds(Duration(newest)));
}

// Those that became due while this one was made are left out.
void Backups::WaitForNext() {
  const Duration every = around_.options.every;
  const auto passed = (runtime::Now() - began_) / every;
  timer_->At(began_ + (passed + 1) * every, [this] { Begin(); });
}

}  // namespace tactus::backup
