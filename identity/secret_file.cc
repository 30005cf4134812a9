#include "identity/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
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

struct Owner {
  uid_t user = static_cast<uid_t>(-1);  // -1: as it comes, as the group
  gid_t group = static_cast<gid_t>(-1);
  mode_t mode = 0;
};

// Whose a file at `path` is to be: as the one that is there; else, with this mode, as the folder.
// What is to be nobody else's is not made so by the mode of the one before.
Owner OwnerOf(const std::string& path, mode_t mode) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
    const mode_t others = (mode & S_IRWXO) == 0 ? S_IRWXO : 0;
    return {.user = found.st_uid, .group = found.st_gid, .mode = found.st_mode & 0777 & ~others};
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &found) != 0) return {.mode = mode};
  return {.user = found.st_uid, .group = found.st_gid, .mode = mode};
}

// Only root gives files away: of others, they stay their writer's. The mode comes last: a file is
// not opened to a group before it is the right one.
bool Give(int file, const Owner& owner) {
  const bool given = ::fchown(file, owner.user, owner.group) == 0 || errno == EPERM;
  return given && ::fchmod(file, owner.mode) == 0;
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

// Whoever replaces one may do so at the same time as another: each writes beside it under a name of
// its own, as mkstemp makes it, 0600 until it has its owner.
absl::Status ReplaceFile(const std::string& path, const std::string& content, unsigned mode) {
  const Owner owner = OwnerOf(path, mode);
  std::string beside = path + ".XXXXXX";
  const Descriptor file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file.open()) return runtime::FileError(errno, path, "cannot be made");
  const bool written = WriteAll(file.get(), content) && Give(file.get(), owner) &&
                       ::fsync(file.get()) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  if (written) return absl::OkStatus();
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
