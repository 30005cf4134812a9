#include "coordinator/backup/backup_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/backup/file_copy.h"
#include "coordinator/files/blob_scan.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/store/store.h"
#include "runtime/arriving_file.h"
#include "runtime/process.h"

namespace tactus::backup {
namespace {

constexpr char kNameFormat[] = "tactus-%E4Y%m%dT%H%M%SZ";  // sorts by time
constexpr char kPartial[] = ".partial";

std::string NameOf(job::WallTime time) {
  return absl::FormatTime(kNameFormat, absl::FromUnixNanos(time), absl::UTCTimeZone());
}

// Nothing: not the name of a backup.
std::optional<job::WallTime> TimeOf(const std::string& name) {
  absl::Time time;
  if (!absl::ParseTime(kNameFormat, name, absl::UTCTimeZone(), &time, nullptr)) return std::nullopt;
  if (NameOf(absl::ToUnixNanos(time)) != name) return std::nullopt;
  return absl::ToUnixNanos(time);
}

std::string HashLine(const std::string& sha256, const std::string& path) {
  return sha256 + "  " + path + "\n";
}

absl::StatusOr<std::set<std::string>> BlobsNamedIn(const std::string& database) {
  const absl::StatusOr<std::unique_ptr<store::Store>> store = store::Store::Open(database);
  if (!store.ok()) return store.status();
  return service::ReadBlobs(**store);
}

// Links and names that were made in the folder and below it.
absl::Status SyncFolders(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    if (!entry->is_directory(error)) continue;
    absl::Status status = runtime::SyncFolder(entry->path().string());
    if (!status.ok()) return status;
  }
  if (error) return runtime::FileError(error.value(), folder, "cannot list");
  return runtime::SyncFolder(folder);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return runtime::FileError(errno, to, "cannot rename");
}

}  // namespace

std::vector<std::string> BackupFolder::Names() const {
  std::vector<std::string> names = runtime::NamesIn(path_);
  std::erase_if(names, [](const std::string& name) { return !TimeOf(name).has_value(); });
  std::ranges::sort(names);
  return names;
}

std::optional<job::WallTime> BackupFolder::NewestTime() const {
  const std::vector<std::string> names = Names();
  return names.empty() ? std::nullopt : TimeOf(names.back());
}

std::optional<job::WallTime> BackupFolder::NewestCompleteTime() const {
  std::vector<std::string> names = Names();
  std::error_code ignored;
  std::erase_if(names, [&](const std::string& name) {
    return std::filesystem::exists(path_ + "/" + name + "/" + kMissingName, ignored);
  });
  return names.empty() ? std::nullopt : TimeOf(names.back());
}

void BackupFolder::RemoveLeftovers() const {
  for (const std::string& name : runtime::NamesIn(path_)) {
    if (!name.ends_with(kPartial)) continue;
    if (!TimeOf(name.substr(0, name.size() - (sizeof(kPartial) - 1)))) continue;
    std::error_code ignored;  // the next time, then
    std::filesystem::remove_all(path_ + "/" + name, ignored);
  }
}

absl::StatusOr<BackupFolder::Report> BackupFolder::Write(const Order& order) const {
  std::error_code error;
  if (!std::filesystem::is_directory(path_, error)) {
    return absl::NotFoundError(path_ + ": is no folder; is its disk mounted?");
  }
  RemoveLeftovers();
  Report report{.name = NameOf(order.now)};
  const std::string whole = path_ + "/" + report.name;
  if (std::filesystem::exists(whole, error)) {
    return absl::AlreadyExistsError(whole + ": is there already");
  }
  const std::string partial = whole + kPartial;
  absl::Status status = runtime::MakeWritableFolder(partial);
  if (status.ok()) status = Fill(order, partial, report);
  if (status.ok()) status = Rename(partial, whole);
  if (status.ok()) status = runtime::SyncFolder(path_);
  if (!status.ok()) {
    std::filesystem::remove_all(partial, error);
    return status;
  }
  report.removed = RemoveOldest(report.name);
  return report;
}

absl::Status BackupFolder::Fill(const Order& order, const std::string& folder,
                                Report& report) const {
  const absl::StatusOr<CopiedFile> database =
      CopyDurably({.folder = order.state_folder,
                   .name = service::kCopyName,
                   .to = folder + "/" + service::kDatabaseName,
                   .cancelled = order.cancelled});
  if (!database.ok()) return database.status();
  // Of the copy that was read: opening one as a database may change it.
  const absl::StatusOr<std::set<std::string>> used =
      BlobsNamedIn(order.state_folder + "/" + service::kCopyName);
  if (!used.ok()) return used.status();
  order.copy_read();
  absl::Status status = TakeBlobs(order, *used, folder, report);
  if (!status.ok()) return status;
  std::string hashes = HashLine(database->sha256, service::kDatabaseName);
  for (const std::string& sha256 : *used) {
    hashes += HashLine(sha256, service::BlobPath(service::kBlobsName, sha256));
  }
  status = runtime::WriteFileWhole(folder + "/" + kHashesName, hashes);
  if (status.ok() && !report.missing.empty()) {
    std::string lines;
    for (const std::string& blob : report.missing) lines += blob + "\n";
    status = runtime::WriteFileWhole(folder + "/" + kMissingName, lines);
  }
  return status.ok() ? SyncFolders(folder) : status;
}

absl::Status BackupFolder::TakeBlobs(const Order& order, const std::set<std::string>& used,
                                     const std::string& folder, Report& report) const {
  const std::vector<std::string> names = Names();
  const std::string before = names.empty() ? "" : path_ + "/" + names.back();
  for (const std::string& sha256 : used) {
    if (order.cancelled()) return absl::CancelledError("backup: is not wanted any more");
    const std::string to = service::BlobPath(folder + "/" + service::kBlobsName, sha256);
    const std::string kept = service::BlobPath(before + "/" + service::kBlobsName, sha256);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(to).parent_path(), error);
    // Where the file system has no links it is copied again.
    if (!before.empty() && ::link(kept.c_str(), to.c_str()) == 0) {
      ++report.files_kept;
      continue;
    }
    const std::string from =
        service::BlobPath(order.state_folder + "/" + service::kBlobsName, sha256);
    FileCopy copy{.folder = std::filesystem::path(from).parent_path().string(),
                  .name = sha256,
                  .to = to,
                  .sha256 = sha256,
                  .cancelled = order.cancelled};
    if (order.fetch) {
      copy.fetch = [&](const FileCopy::Take& take) { return order.fetch(sha256, take); };
    }
    const absl::StatusOr<CopiedFile> copied = CopyDurably(copy);
    if (absl::IsDataLoss(copied.status())) {
      report.missing.emplace_back(copied.status().message());
      continue;
    }
    if (!copied.ok()) return copied.status();
    ++report.files_copied;
    report.bytes_copied += copied->size_bytes;
  }
  return absl::OkStatus();
}

// Not the one that was just made, although the clock may have been set back since others were.
absl::Status BackupFolder::RemoveOldest(const std::string& newest) const {
  std::vector<std::string> names = Names();
  std::erase(names, newest);
  for (std::size_t i = 0; i + keep_ <= names.size(); ++i) {
    const std::string whole = path_ + "/" + names[i];
    // Half of one is not to look like a backup.
    absl::Status status = Rename(whole, whole + kPartial);
    if (!status.ok()) return status;
    std::error_code error;
    std::filesystem::remove_all(whole + kPartial, error);
    if (error) return runtime::FileError(error.value(), whole, "cannot remove");
  }
  return absl::OkStatus();
}

}  // namespace tactus::backup
