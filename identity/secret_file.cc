#include "identity/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/descriptor.h"
#include "runtime/process.h"

namespace tactus::identity {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

absl::Status MakePrivateFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat found {};
  const bool there = error == EEXIST && ::stat(folder.c_str(), &found) == 0;
  if (there && S_ISDIR(found.st_mode)) return absl::OkStatus();
  return runtime::FileError(error, folder, "cannot be made");
}

absl::Status WriteNewFile(const std::string& path, const std::string& content, unsigned mode) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (file.get() < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(path + ": is there already, and is left as it is");
  }
  if (file.get() < 0) return runtime::FileError(errno, path, "cannot be made");
  if (WriteAll(file.get(), content) && ::fsync(file.get()) == 0) return absl::OkStatus();
  const int error = errno;
  ::unlink(path.c_str());
  return runtime::FileError(error, path, "cannot be written");
}

absl::Status ReplaceFile(const std::string& path, const std::string& content, unsigned mode) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());  // of somebody who was ended while writing it
  const absl::Status written = WriteNewFile(beside, content, mode);
  if (!written.ok()) return written;
  if (::rename(beside.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  ::unlink(beside.c_str());
  return runtime::FileError(error, path, "cannot be written");
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return runtime::FileError(errno, path, "cannot be read");
  std::string content(kFileBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return runtime::FileError(errno, path, "cannot be read");
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kFileBytesMax) return absl::InvalidArgumentError(path + ": is larger than 1 MiB");
  content.resize(size);
  return content;
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && (found.st_mode & S_IRWXO) != 0) {
    return absl::FailedPreconditionError(path +
                                         ": everybody on this machine may read it or more; "
                                         "take that away: chmod o-rwx " +
                                         path);
  }
  return ReadSmallFile(path);
}

}  // namespace tactus::identity
