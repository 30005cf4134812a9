#include "runtime/arriving_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "runtime/process.h"

namespace tactus::runtime {
namespace {

constexpr std::size_t kCatchUpBytes = 1u << 20;

}  // namespace

absl::Status SyncFolder(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open()) return FileError(errno, folder, "cannot open");
  if (::fsync(opened.get()) != 0) return FileError(errno, folder, "cannot sync");
  return absl::OkStatus();
}

absl::StatusOr<ArrivingFile> ArrivingFile::Open(const std::string& path) {
  Descriptor opened(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat found = {};
  if (!opened.open() || ::fstat(opened.get(), &found) != 0) {
    return FileError(errno, path, "cannot open");
  }
  ArrivingFile file(std::move(opened), path);
  file.size_bytes_ = static_cast<std::uint64_t>(found.st_size);
  return file;
}

absl::StatusOr<bool> ArrivingFile::CatchUp(std::size_t bytes_max) {
  std::string bytes;
  while (hashed_bytes_ < size_bytes_ && bytes_max > 0) {
    bytes.resize(std::min({kCatchUpBytes, bytes_max, std::size_t{size_bytes_ - hashed_bytes_}}));
    const ssize_t count =
        ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(hashed_bytes_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, path_, "cannot read");
    if (count == 0) return absl::DataLossError(path_ + ": became shorter while it was read");
    hash_.Update({bytes.data(), static_cast<std::size_t>(count)});
    hashed_bytes_ += static_cast<std::uint64_t>(count);
    bytes_max -= static_cast<std::size_t>(count);
  }
  return hashed_bytes_ == size_bytes_;
}

absl::Status ArrivingFile::Append(std::string_view bytes) {
  // Bytes are hashed in their order: what was there before has to be caught up with.
  TACTUS_CHECK(hashed_bytes_ == size_bytes_);
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, path_, "cannot write");
    const auto written = static_cast<std::size_t>(count);
    hash_.Update(bytes.substr(0, written));
    size_bytes_ += written;
    hashed_bytes_ += written;
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status ArrivingFile::MoveTo(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  const bool made = std::filesystem::create_directories(folder, error);
  if (error) return FileError(error.value(), folder.string(), "cannot create the folder");
  // The content before the name, and then the name: after a crash it stands for all of the file, or
  // is not there.
  if (::fsync(file_.get()) != 0) return FileError(errno, path_, "cannot sync");
  if (::rename(path_.c_str(), path.c_str()) != 0) return FileError(errno, path, "cannot rename");
  file_.Close();
  const absl::Status synced = SyncFolder(folder.string());
  return synced.ok() && made ? SyncFolder(folder.parent_path().string()) : synced;
}

void ArrivingFile::Remove() {
  if (!file_.open()) return;
  ::unlink(path_.c_str());
  file_.Close();
}

}  // namespace tactus::runtime
