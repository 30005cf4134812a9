#include "runtime/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "runtime/process.h"

namespace tactus::runtime {
namespace {

// What was opened by that name, or, where nothing could be, what has the name.
bool IsLink(int opened, int folder, const std::string& name) {
  struct stat found = {};
  const int status = opened >= 0 ? ::fstat(opened, &found)
                                 : ::fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW);
  return status == 0 && S_ISLNK(found.st_mode);
}

// One name of a way, which no link is followed for. None, and errno: ELOOP, it is one, though one
// may be opened as such (O_PATH), and is said to be no folder where a folder is asked for.
Descriptor OpenName(int folder, const std::string& name, int flags) {
  int opened = -1;
  do {
    opened = ::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
  } while (opened < 0 && errno == EINTR);
  const int error = errno;
  Descriptor one(opened);
  if (IsLink(opened, folder, name)) {
    one = {};
    errno = ELOOP;
  } else if (!one.open()) {
    errno = error;
  }
  return one;
}

// As openat2(2) with the ways that OpenBeneath allows, name by name: where a service manager's
// filter or an older container runtime's has no such call, as filters do not see its flags.
Descriptor Walk(int folder, const std::filesystem::path& path, int flags) {
  if (path.is_absolute()) {
    errno = EXDEV;
    return {};
  }
  Descriptor above;
  int at = folder;
  for (auto part = path.begin(); part != path.end(); ++part) {
    if (*part == "..") {
      errno = EXDEV;
      return {};
    }
    const bool last = std::next(part) == path.end();
    Descriptor next =
        OpenName(at, part->empty() ? "." : part->string(), last ? flags : O_PATH | O_DIRECTORY);
    if (last || !next.open()) return next;
    above = std::move(next);
    at = above.get();
  }
  errno = ENOENT;
  return {};
}

}  // namespace

int OpenAt2(int folder, const std::string& path, int flags, unsigned resolve) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = resolve;
  int opened = -1;
  do {
    opened = static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
  } while (opened < 0 && (errno == EAGAIN || errno == EINTR));  // something is moved at the moment
  return opened;
}

absl::StatusOr<Descriptor> OpenBeneath(int folder, const std::string& path, int flags) {
  Descriptor opened(
      OpenAt2(folder, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  if (!opened.open() && errno == ENOSYS) opened = Walk(folder, path, flags);
  if (opened.open()) return opened;
  if (errno == ELOOP) return absl::PermissionDeniedError(path + ": a link is on its way");
  if (errno == EXDEV) return absl::PermissionDeniedError(path + ": leads out of its folder");
  return FileError(errno, path, "cannot be opened");
}

}  // namespace tactus::runtime
