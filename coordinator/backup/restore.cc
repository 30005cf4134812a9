#include "coordinator/backup/restore.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "coordinator/backup/backup_folder.h"
#include "coordinator/backup/file_copy.h"
#include "coordinator/files/blob_scan.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/store/store.h"
#include "runtime/arriving_file.h"
#include "runtime/process.h"

namespace tactus::backup {
namespace {

constexpr std::size_t kProblemsSaid = 20;

bool IsBackup(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder + "/" + service::kDatabaseName, ignored);
}

bool IsFree(const std::string& folder) {
  std::error_code error;
  return !std::filesystem::exists(folder, error) ||
         (std::filesystem::is_directory(folder, error) &&
          std::filesystem::is_empty(folder, error) && !error);
}

// Of the database, as the backup's list has it; empty: it has none.
std::string HashOnRecord(const std::string& backup) {
  std::ifstream hashes(backup + "/" + kHashesName);
  std::string sha256, name;
  hashes >> sha256 >> name;
  return name == service::kDatabaseName ? sha256 : "";
}

std::string Listed(const std::vector<std::string>& problems) {
  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < kProblemsSaid; ++i) {
    text += "\n  " + problems[i];
  }
  if (problems.size() > kProblemsSaid) {
    text += "\n  and " + std::to_string(problems.size() - kProblemsSaid) + " more";
  }
  return text;
}

class Restoring {
 public:
  // into: a folder of this one's own
  Restoring(const RestoreOrder& order, std::string into) : order_(order), into_(std::move(into)) {}

  absl::StatusOr<RestoreReport> Run() {
    absl::Status status = TakeDatabase();
    std::set<std::string> used;
    if (status.ok()) status = LookThrough(used);
    // Copying may take hours: what is wrong already is said now.
    if (status.ok()) status = Judge();
    for (const std::string& sha256 : used) {
      if (status.ok()) status = TakeBlob(sha256);
    }
    if (status.ok()) status = Judge();
    if (!status.ok()) return status;
    return std::move(report_);
  }

 private:
  absl::Status TakeDatabase() {
    const absl::StatusOr<CopiedFile> copied =
        CopyDurably({.folder = order_.backup,
                     .name = service::kDatabaseName,
                     .to = into_ + "/" + service::kDatabaseName,
                     .cancelled = [] { return false; }});
    if (!copied.ok()) return copied.status();
    report_.bytes += copied->size_bytes;
    if (copied->sha256 != HashOnRecord(order_.backup)) {
      report_.problems.push_back(std::string(service::kDatabaseName) +
                                 ": has another hash than in " + kHashesName);
    }
    return absl::OkStatus();
  }

  // At the copy: what is looked through is what is used.
  absl::Status LookThrough(std::set<std::string>& used) {
    const absl::StatusOr<std::unique_ptr<store::Store>> store =
        store::Store::Open(into_ + "/" + service::kDatabaseName);
    if (!store.ok()) return store.status();
    absl::StatusOr<std::vector<std::string>> found = (*store)->CheckIntegrity();
    if (!found.ok()) return found.status();
    for (std::string& problem : *found) report_.problems.push_back(std::move(problem));
    absl::StatusOr<std::set<std::string>> blobs = service::ReadBlobs(**store);
    if (!blobs.ok()) return blobs.status();
    used = *std::move(blobs);
    return absl::OkStatus();
  }

  absl::Status TakeBlob(const std::string& sha256) {
    const std::string from = service::BlobPath(order_.backup + "/" + service::kBlobsName, sha256);
    const absl::StatusOr<CopiedFile> copied =
        CopyDurably({.folder = std::filesystem::path(from).parent_path().string(),
                     .name = sha256,
                     .to = service::BlobPath(into_ + "/" + service::kBlobsName, sha256),
                     .sha256 = sha256,
                     .cancelled = [] { return false; }});
    if (absl::IsDataLoss(copied.status())) {
      report_.problems.emplace_back(copied.status().message());
      return absl::OkStatus();
    }
    if (!copied.ok()) return copied.status();
    ++report_.files;
    report_.bytes += copied->size_bytes;
    return absl::OkStatus();
  }

  absl::Status Judge() const {
    if (report_.problems.empty() || order_.damaged_too) return absl::OkStatus();
    return absl::DataLossError("restore-from: " + order_.backup +
                               " is not whole:" + Listed(report_.problems) +
                               "\nrestore another backup, or what is whole of this one with "
                               "--restore-damaged");
  }

  const RestoreOrder& order_;
  const std::string into_;
  RestoreReport report_;
};

// A folder that is there, empty, gives way.
absl::Status GiveName(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    return runtime::FileError(
        error, to,
        error == EBUSY ? "is where a disk is mounted; give a folder in it" : "cannot rename");
  }
  return runtime::SyncFolder(std::filesystem::path(to).parent_path().string());
}

}  // namespace

absl::StatusOr<RestoreReport> Restore(const RestoreOrder& order) {
  if (!IsBackup(order.backup)) {
    return absl::NotFoundError("restore-from: " + order.backup +
                               ": is no backup; give a folder such as "
                               "BACKUP_DIR/tactus-20261123T014500Z");
  }
  if (!IsFree(order.state_folder)) {
    return absl::FailedPreconditionError("state-dir: " + order.state_folder +
                                         ": is not empty; give another one, or move it aside");
  }
  std::error_code error;
  std::filesystem::path state =
      std::filesystem::absolute(order.state_folder, error).lexically_normal();
  if (!state.has_filename()) state = state.parent_path();  // it ended with a slash
  const std::string made = state.string() + ".restoring";
  std::filesystem::remove_all(made, error);  // of a restore that was killed
  absl::Status status = runtime::MakeWritableFolder(made);
  if (!status.ok()) return status;
  absl::StatusOr<RestoreReport> report = Restoring(order, made).Run();
  if (report.ok()) {
    status = GiveName(made, state.string());
    if (!status.ok()) report = status;
  }
  if (!report.ok()) std::filesystem::remove_all(made, error);
  return report;
}

}  // namespace tactus::backup
