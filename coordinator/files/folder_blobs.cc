#include "coordinator/files/folder_blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/page_cache.h"
#include "runtime/process.h"
#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// A piece of an earlier attempt that is hashed at one go: some 20 ms.
constexpr std::size_t kCatchUpBytes = 16u << 20;

absl::Status CheckHash(const std::string& sha256) {
  if (runtime::IsSha256(sha256)) return absl::OkStatus();
  return runtime::InvalidFields(
      {{.field = "sha256",
        .description = "found " + std::to_string(sha256.size()) +
                       " bytes, allowed are 64 hexadecimal digits in lower case"}});
}

// Size of a file; nothing when there is none.
std::optional<std::uint64_t> SizeOf(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(found.st_size);
}

// Marks a file as used now.
void Touch(const std::string& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

bool OlderThan(const std::string& path, job::WallTime limit) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return false;
  return job::WallTime{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec < limit;
}

}  // namespace

std::string BlobPath(const std::string& folder, const std::string& sha256) {
  return folder + "/" + sha256.substr(0, 2) + "/" + sha256;
}

std::string FolderBlobs::PartialPathOf(const std::string& name) const {
  return folder_ + "/partial/" + name;
}

absl::StatusOr<BlobStore::State> FolderBlobs::Find(const std::string& sha256) {
  const absl::Status status = CheckHash(sha256);
  if (!status.ok()) return status;
  if (const auto size = SizeOf(PathOf(sha256))) {
    // Whoever asks is about to use it: it stays for a while, though no job names it yet.
    Touch(PathOf(sha256));
    return State{.received_bytes = *size, .complete = true};
  }
  return State{.received_bytes = SizeOf(PartialPathOf(sha256)).value_or(0)};
}

bool FolderBlobs::Has(const std::string& sha256) const {
  return SizeOf(PathOf(sha256)).has_value() || SizeOf(PartialPathOf(sha256)).has_value();
}

bool FolderBlobs::Unlink(const std::string& path, const std::string& name) {
  if (::unlink(path.c_str()) != 0) return false;
  removed_(name);
  return true;
}

absl::StatusOr<BlobWriter> FolderBlobs::Write(const Upload& upload) {
  absl::Status status = upload.sha256.empty() ? absl::OkStatus() : CheckHash(upload.sha256);
  if (!status.ok()) return status;
  if (upload.size_bytes > runtime::kBlobBytesMax) {
    return runtime::InvalidFields(
        {{.field = "size_bytes",
          .description = "found " + std::to_string(upload.size_bytes) + ", allowed are " +
                         std::to_string(runtime::kBlobBytesMax)}});
  }
  BlobWriter writer(*this, upload);
  if (!upload.sha256.empty() && SizeOf(PathOf(upload.sha256))) {
    Touch(PathOf(upload.sha256));
    writer.complete_ = true;
    Hold(upload.sha256);
    return writer;
  }
  if (writers_.size() >= kWritersMax && !writers_.contains(upload.sha256)) {
    return absl::ResourceExhaustedError("upload: " + std::to_string(kWritersMax) +
                                        " uploads are under way; try again later");
  }
  std::error_code error;
  std::filesystem::create_directories(folder_ + "/partial", error);
  if (error) return runtime::FileError(error.value(), folder_, "cannot create the folder");
  const std::uint64_t turn = ++last_writer_;
  const std::string name =
      upload.sha256.empty() ? "unnamed-" + std::to_string(turn) : upload.sha256;
  const std::string path = PartialPathOf(name);
  // Left by a process that ended, or longer than it may be: of no use.
  const std::uint64_t there = SizeOf(path).value_or(0);
  if (upload.sha256.empty() || there > upload.size_bytes) ::unlink(path.c_str());
  absl::StatusOr<runtime::ArrivingFile> file = runtime::ArrivingFile::Open(path);
  if (!file.ok()) return file.status();
  if (upload.offset > file->size_bytes()) {
    return absl::OutOfRangeError("offset: found " + std::to_string(upload.offset) +
                                 ", allowed is at most what has come, " +
                                 std::to_string(file->size_bytes()));
  }
  writers_[name] = turn;
  writer.name_ = name;
  writer.turn_ = turn;
  writer.position_ = upload.offset;
  writer.file_.emplace(*std::move(file));
  return writer;
}

BlobWriter FolderBlobs::WriterOfWhole(const Upload& upload) {
  BlobWriter writer(*this, upload);
  writer.complete_ = true;
  writer.elsewhere_ = true;
  Hold(upload.sha256);
  return writer;
}

absl::StatusOr<std::unique_ptr<BlobReader>> FolderBlobs::Read(const std::string& sha256,
                                                              std::uint64_t offset) {
  const absl::Status status = CheckHash(sha256);
  if (!status.ok()) return status;
  Touch(PathOf(sha256));  // in use until now
  auto reader = ArtifactReader::Open(folder_ + "/" + sha256.substr(0, 2), sha256);
  if (absl::IsNotFound(reader.status())) {
    return runtime::WithReason(absl::NotFoundError("sha256:" + sha256 + ": no such file here"),
                               {.reason = "BLOB_NOT_FOUND", .metadata = {{"sha256", sha256}}});
  }
  if (!reader.ok()) return reader.status();
  const absl::Status moved = reader->Skip(offset);
  if (!moved.ok()) return moved;
  return std::make_unique<FileReader>(*std::move(reader));
}

std::size_t FolderBlobs::Sweep(const std::set<std::string>& used, job::WallTime now) {
  if (keep_all_) return 0;
  const job::WallTime limit = now - kUnusedAge.count();
  std::size_t removed = 0;
  for (const std::string& name : runtime::NamesIn(folder_ + "/partial")) {
    const std::string path = PartialPathOf(name);
    if (!writers_.contains(name) && OlderThan(path, limit)) removed += Unlink(path, name);
  }
  for (const std::string& prefix : runtime::NamesIn(folder_)) {
    if (prefix.size() != 2) continue;
    for (const std::string& sha256 : runtime::NamesIn(folder_ + "/" + prefix)) {
      const std::string path = folder_ + "/" + prefix + "/" + sha256;
      if (used.contains(sha256) || held_.contains(sha256)) continue;
      if (OlderThan(path, limit)) removed += Unlink(path, sha256);
    }
  }
  return removed;
}

std::set<std::string> FolderBlobs::Remove(const std::set<std::string>& unnamed,
                                          job::WallTime since) {
  if (keep_all_) return unnamed;
  std::set<std::string> left;
  for (const std::string& sha256 : unnamed) {
    const std::string path = PathOf(sha256);
    if (!SizeOf(path)) continue;
    if (held_.contains(sha256) || !OlderThan(path, since)) {
      left.insert(sha256);
    } else {
      Unlink(path, sha256);
    }
  }
  return left;
}

void FolderBlobs::LetGo(const std::string& sha256) {
  Touch(PathOf(sha256));
  const auto held = held_.find(sha256);
  if (--held->second == 0) held_.erase(held);
  let_go_(sha256);
}

std::optional<std::uint64_t> FolderBlobs::SizeOfWhole(const std::string& sha256) const {
  return SizeOf(PathOf(sha256));
}

std::vector<std::string> FolderBlobs::NamesOfWhole() const {
  std::vector<std::string> names;
  for (const std::string& prefix : runtime::NamesIn(folder_)) {
    if (prefix.size() != 2) continue;
    for (std::string& name : runtime::NamesIn(folder_ + "/" + prefix)) {
      if (runtime::IsSha256(name)) names.push_back(std::move(name));
    }
  }
  return names;
}

void FolderBlobs::Drop(const std::string& sha256) const { ::unlink(PathOf(sha256).c_str()); }

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      upload_(std::move(other.upload_)),
      name_(std::move(other.name_)),
      turn_(other.turn_),
      position_(other.position_),
      complete_(other.complete_),
      elsewhere_(other.elsewhere_),
      file_(std::move(other.file_)),
      back_(std::move(other.back_)) {}

BlobWriter::~BlobWriter() {
  if (store_ == nullptr) return;
  // No longer held, but marked as used now: it stays for a while, in which a job may come to name
  // it.
  if (complete_) store_->LetGo(upload_.sha256);
  if (!file_.has_value() || !CheckTurn().ok()) return;
  store_->writers_.erase(name_);
  if (upload_.sha256.empty()) file_->Remove();
}

absl::Status BlobWriter::CheckTurn() const {
  const auto found = store_->writers_.find(name_);
  if (found != store_->writers_.end() && found->second == turn_) return absl::OkStatus();
  return absl::AbortedError("upload: another upload of this file took over; ask how much has come");
}

absl::Status BlobWriter::WrongSize(const std::string& how) const {
  return runtime::InvalidFields({{.field = "size_bytes",
                                  .description = "said " + std::to_string(upload_.size_bytes) +
                                                 ", and " + how + " than that came"}});
}

absl::StatusOr<bool> BlobWriter::CatchUp() {
  if (complete_) return true;
  const absl::Status turn = CheckTurn();
  if (!turn.ok()) return turn;
  return file_->CatchUp(kCatchUpBytes);
}

absl::Status BlobWriter::Append(std::string_view bytes) {
  if (complete_) return absl::OkStatus();
  const absl::Status turn = CheckTurn();
  if (!turn.ok()) return turn;
  if (bytes.size() > upload_.size_bytes - position_) return WrongSize("more");
  // What an earlier attempt brought is not written again; that it is the same, Commit() finds out.
  const std::uint64_t known =
      std::min<std::uint64_t>(bytes.size(), file_->size_bytes() - position_);
  const absl::Status status = file_->Append(bytes.substr(known));
  position_ += bytes.size();
  return status;
}

absl::StatusOr<std::string> BlobWriter::Commit() {
  if (complete_) return upload_.sha256;
  absl::Status status = CheckTurn();
  if (!status.ok()) return status;
  if (file_->size_bytes() != upload_.size_bytes) return WrongSize("less");
  const std::string sha256 = file_->FinishHash();
  if (!upload_.sha256.empty() && sha256 != upload_.sha256) {
    file_->Remove();
    store_->removed_(upload_.sha256);
    return runtime::WithReason(
        absl::DataLossError("sha256: said " + upload_.sha256 + ", and what came has " + sha256 +
                            "; it was removed"),
        {.reason = "WRONG_CONTENT_HASH", .metadata = {{"sha256", sha256}}});
  }
  status = file_->MoveTo(store_->PathOf(sha256));
  if (!status.ok()) return status;
  store_->writers_.erase(name_);
  file_.reset();
  complete_ = true;
  upload_.sha256 = sha256;
  store_->Hold(sha256);
  return sha256;
}

absl::StatusOr<bool> BlobWriter::ReadBack() {
  TACTUS_CHECK(complete_);
  if (elsewhere_) return true;  // where it was held against its hash as it came
  if (!back_.has_value()) {
    const std::string path = store_->PathOf(upload_.sha256);
    DropCached(path);
    absl::StatusOr<runtime::ArrivingFile> file = runtime::ArrivingFile::Open(path);
    if (!file.ok()) return file.status();
    back_.emplace(*std::move(file));
  }
  const absl::StatusOr<bool> done = back_->CatchUp(kCatchUpBytes);
  if (!done.ok() || !*done) return done;
  if (back_->FinishHash() != upload_.sha256) {
    back_->Remove();
    store_->removed_(upload_.sha256);
    return runtime::WithReason(
        absl::DataLossError("sha256:" + upload_.sha256 +
                            ": the disk gives something else than was "
                            "written to it; it was removed"),
        {.reason = "WRONG_CONTENT_HASH", .metadata = {{"sha256", upload_.sha256}}});
  }
  back_.reset();
  return true;
}

}  // namespace tactus::service
