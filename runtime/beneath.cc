#include "runtime/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "runtime/process.h"

namespace tactus::runtime {

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
  if (opened.open()) return opened;
  if (errno == ELOOP) return absl::PermissionDeniedError(path + ": a link is on its way");
  if (errno == EXDEV) return absl::PermissionDeniedError(path + ": leads out of its folder");
  return FileError(errno, path, "cannot be opened");
}

}  // namespace tactus::runtime
