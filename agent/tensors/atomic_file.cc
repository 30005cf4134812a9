#include "agent/tensors/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tactus::tensors {
namespace {

// The status of the system call that just failed.
absl::Status SystemError(const std::string& what) {
  const int error = errno;
  const std::string message = what + ": " + std::strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

// Makes a rename in the folder durable.
absl::Status SyncFolder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::filesystem::path folder = parent.empty() ? std::filesystem::path(".") : parent;
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open()) return SystemError(folder.string());
  const bool synced = ::fsync(opened.get()) == 0 || errno == EINVAL;
  return synced ? absl::OkStatus() : SystemError(folder.string());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Open(const std::string& path,
                                                             std::stop_token stop) {
  const std::string partial = path + ".partial";
  Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.open()) return SystemError(path);
  return std::unique_ptr<AtomicFile>(new AtomicFile(path, std::move(file), std::move(stop)));
}

AtomicFile::AtomicFile(std::string path, Descriptor file, std::stop_token stop)
    : path_(std::move(path)),
      partial_(path_ + ".partial"),
      file_(std::move(file)),
      stop_(std::move(stop)) {}

AtomicFile::~AtomicFile() {
  if (file_.open()) ::unlink(partial_.c_str());
}

absl::Status AtomicFile::Fail(const std::string& what) {
  error_ = SystemError(what);
  return error_;
}

absl::Status AtomicFile::Append(const void* bytes, std::size_t size) {
  if (!error_.ok()) return error_;
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(file_.get(), next, std::min(size, kPieceBytes - unsynced_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail(path_);
    next += written;
    size -= static_cast<std::size_t>(written);
    unsynced_ += static_cast<std::size_t>(written);
    if (unsynced_ == kPieceBytes && !Sync().ok()) return error_;
  }
  return absl::OkStatus();
}

// An error of the disk is told once, to the first who syncs.
absl::Status AtomicFile::Sync() {
  unsynced_ = 0;
  if (stop_.stop_requested()) return error_ = absl::CancelledError(path_ + ": given up");
  return ::fsync(file_.get()) == 0 ? absl::OkStatus() : Fail(path_);
}

absl::Status AtomicFile::Commit() {
  if (!error_.ok() || !Sync().ok()) return error_;
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return Fail(path_);
  file_.Close();
  return SyncFolder(path_);
}

}  // namespace tactus::tensors
