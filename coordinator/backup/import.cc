#include "coordinator/backup/import.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "coordinator/files/blob_scan.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/bucket_blobs.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/store/store.h"
#include "runtime/process.h"

namespace tactus::backup {
namespace {

constexpr char kLockName[] = "/lock";

// Its copy of the database goes with it, and what SQLite has beside it.
class Copy {
 public:
  explicit Copy(std::string path) : path_(std::move(path)) { Remove(); }
  ~Copy() { Remove(); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const std::string& path() const { return path_; }

 private:
  void Remove() const {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(path_ + suffix, ignored);
  }
  const std::string path_;
};

// Brings the copy up to date and looks through it; what its jobs name.
absl::StatusOr<std::set<std::string>> LookThrough(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<store::Store>> store = store::Store::Open(path);
  if (!store.ok()) return store.status();
  const absl::StatusOr<std::vector<std::string>> problems = (*store)->CheckIntegrity();
  if (!problems.ok()) return problems.status();
  if (!problems->empty()) {
    return absl::DataLossError(
        "import-from: the store is damaged, and nothing was imported: " + problems->front() +
        (problems->size() > 1 ? ", and " + std::to_string(problems->size() - 1) +
                                    " more that tactus admin "
                                    "integrity-check lists"
                              : ""));
  }
  return service::ReadBlobs(**store);
}

using InBucket = std::map<std::string, std::uint64_t>;

// What is in the bucket; nothing, where there is none.
absl::StatusOr<InBucket> BlobsOf(const bucket::BucketOptions& options) {
  if (options.place.empty()) return InBucket();
  const absl::StatusOr<std::unique_ptr<bucket::Bucket>> bucket = bucket::Bucket::Open(options);
  if (!bucket.ok()) return bucket.status();
  return service::BucketBlobs::ListBlobs(**bucket);
}

// Jobs' logs and results are no blobs; without the key, workers of one group that the coordinator
// tells of it before and after the import are told different secrets.
std::vector<std::string> NotCopied(const std::string& from, const std::string& to) {
  std::vector<std::string> names;
  for (const char* name :
       {service::kBlobsName, "jobs", "mesh-key", service::kUploadsName, "tokens"}) {
    std::error_code ignored;
    const bool there = std::filesystem::exists(from + "/" + name, ignored);
    if (there && !std::filesystem::exists(to + "/" + name, ignored)) names.emplace_back(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<ImportReport> Import(const ImportOrder& order) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string database = order.from + "/" + service::kDatabaseName;
  if (!fs::is_regular_file(database, ignored)) {
    return absl::NotFoundError("import-from: " + order.from + ": has no " + service::kDatabaseName +
                               "; give the --state-dir of a coordinator, or a backup of one");
  }
  // Before the lock is made, where it is the same folder.
  const bool backup = !fs::exists(order.from + kLockName, ignored);
  absl::Status status = runtime::MakeWritableFolder(order.state_folder);
  if (!status.ok()) return status;
  const absl::StatusOr<runtime::LockFile> own =
      runtime::LockFile::Acquire(order.state_folder + kLockName);
  if (!own.ok()) return own.status();
  std::optional<runtime::LockFile> other;
  if (!backup && !fs::equivalent(order.from, order.state_folder, ignored)) {
    absl::StatusOr<runtime::LockFile> lock = runtime::LockFile::Acquire(order.from + kLockName);
    if (!lock.ok()) return lock.status();
    other = *std::move(lock);
  }
  const Copy copy(order.state_folder + "/" + service::kCopyName);
  status = store::CopyEmbedded(database, copy.path());
  if (!status.ok()) return status;
  const absl::StatusOr<std::set<std::string>> files = LookThrough(copy.path());
  if (!files.ok()) return files.status();
  const absl::StatusOr<InBucket> there = BlobsOf(order.blobs);
  if (!there.ok()) return there.status();
  const absl::StatusOr<store::Imported> rows = store::ImportIntoShared(copy.path(), order.to);
  if (!rows.ok()) return rows.status();
  ImportReport report{.rows = *rows, .files = files->size(), .from_backup = backup};
  for (const std::string& sha256 : *files) {
    const std::string blobs = order.files_folder + "/" + service::kBlobsName;
    if (there->contains(sha256)) continue;
    if (!fs::exists(service::BlobPath(blobs, sha256), ignored)) ++report.missing;
  }
  report.to_copy = NotCopied(order.from, order.files_folder);
  return report;
}

}  // namespace tactus::backup
