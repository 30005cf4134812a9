#include "runtime/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tactus::runtime {
namespace {

// Writes all of `content`; 0 or errno.
int WriteAll(int descriptor, const std::string& content) {
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = ::write(descriptor, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    written += static_cast<std::size_t>(count);
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

std::string HolderOf(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t count = ::pread(descriptor, text.data(), text.size() - 1, 0);
  return count > 0 ? std::string(text.data(), static_cast<std::size_t>(count)) : "unknown";
}

}  // namespace

void EndWithParent() {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have ended before the call above: then no signal comes by itself.
  if (::getppid() != parent) ::raise(SIGTERM);
}

void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status FileError(int error, const std::string& path, const std::string& what) {
  const std::string message = path + ": " + what + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EEXIST:
    case ENOTDIR:
      return absl::FailedPreconditionError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status MakeWritableFolder(const std::string& folder) {
  std::error_code error;
  const bool existed = std::filesystem::is_directory(folder, error);
  std::filesystem::create_directories(folder, error);
  if (error) return FileError(error.value(), folder, "cannot create the folder");
  if (!existed) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  // Tried out: permissions do not tell of a file system that is full or read-only.
  std::string probe = folder + "/.writable-XXXXXX";
  const int descriptor = ::mkstemp(probe.data());
  if (descriptor < 0) return FileError(errno, folder, "cannot write to the folder");
  ::close(descriptor);
  ::unlink(probe.c_str());
  return absl::OkStatus();
}

std::string WorkerProgramFor(const std::string& folder) {
  const std::filesystem::path own = folder;
  const std::filesystem::path beside = own / "tactus-worker";
  const std::filesystem::path installed =
      own.parent_path() / "libexec" / "tactus" / "tactus-worker";
  std::error_code error;
  const bool apart =
      !std::filesystem::exists(beside, error) && std::filesystem::exists(installed, error);
  return (apart ? installed : beside).string();
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

absl::Status WriteFileWhole(const std::string& path, const std::string& content) {
  std::string beside = path + ".XXXXXX";
  const int descriptor = ::mkstemp(beside.data());
  if (descriptor < 0) return FileError(errno, path, "cannot create");
  int error = WriteAll(descriptor, content);
  ::close(descriptor);
  if (error == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  ::unlink(beside.c_str());
  return FileError(error, path, "cannot write");
}

absl::StatusOr<LockFile> LockFile::Acquire(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.open()) return FileError(errno, path, "cannot open");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(path + ": is held by process " + HolderOf(file.get()));
  }
  if (::ftruncate(file.get(), 0) != 0) return FileError(errno, path, "cannot write");
  const int error = WriteAll(file.get(), std::to_string(::getpid()));
  if (error != 0) return FileError(error, path, "cannot write");
  return LockFile(std::move(file));
}

}  // namespace tactus::runtime
