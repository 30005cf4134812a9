#include "agent/box/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/process.h"

namespace tactus::box {
namespace {

std::string Joined(const std::vector<std::string>& roots) {
  std::string text;
  for (const std::string& root : roots) text += (text.empty() ? "" : ", ") + root;
  return text;
}

// What of a pattern holds for all that match it.
std::string BeforeWildCards(const std::string& path) {
  const std::size_t first = path.find_first_of("*?[{");
  if (first == std::string::npos) return path;
  return path.substr(0, path.rfind('/', first));
}

}  // namespace

absl::StatusOr<Descriptor> OpenFileBeneath(const std::string& folder, const std::string& path) {
  const Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.open()) return runtime::FileError(errno, folder, "cannot be opened");
  // A pipe that nobody writes to is not waited for.
  absl::StatusOr<Descriptor> file = OpenBeneath(opened.get(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok())
    return absl::Status(file.status().code(), folder + "/" + std::string(file.status().message()));
  struct stat found = {}, above = {};
  if (::fstat(file->get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::PermissionDeniedError(folder + "/" + path + ": is no regular file");
  }
  if (::fstat(opened.get(), &above) != 0 || found.st_uid != above.st_uid) {
    return absl::PermissionDeniedError(folder + "/" + path + ": belongs to another user");
  }
  return file;
}

void RemoveBeneath(const std::string& folder, const std::string& path) {
  const std::filesystem::path parsed(path);
  const std::string name = parsed.filename();
  const Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.open() || name.empty() || name == "..") return;
  const std::string above = parsed.parent_path().empty() ? "." : parsed.parent_path().string();
  const absl::StatusOr<Descriptor> place = OpenBeneath(opened.get(), above, O_PATH | O_DIRECTORY);
  if (place.ok()) ::unlinkat(place->get(), name.c_str(), 0);
}

absl::StatusOr<std::string> PathOf(int descriptor) {
  std::error_code error;
  std::string path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string();
  if (error) return runtime::FileError(error.value(), "/proc/self/fd", "cannot be read");
  return path;
}

bool IsBeneath(const std::string& path, const std::string& folder) {
  if (folder == "/") return path.starts_with('/');
  return path == folder || path.starts_with(folder + "/");
}

absl::Status CheckBelowRoots(const std::string& path, const std::vector<std::string>& roots) {
  const std::string place = std::filesystem::path(BeforeWildCards(path)).lexically_normal();
  for (const std::string& root : roots) {
    if (!IsBeneath(place, root)) continue;
    const Descriptor opened(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened.open()) return runtime::FileError(errno, root, "cannot be opened");
    std::string below = place.substr(root.size());
    below.erase(0, below.find_first_not_of('/'));
    if (below.empty()) return absl::OkStatus();
    const Descriptor file(
        runtime::OpenAt2(opened.get(), below, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS));
    if (file.open()) return absl::OkStatus();
    if (errno != EXDEV && errno != ELOOP)
      return runtime::FileError(errno, path, "cannot be opened");
    return absl::PermissionDeniedError(path + ": a link on its way leads out of " + root);
  }
  return absl::PermissionDeniedError(path + ": is not below this node's --data-roots (" +
                                     Joined(roots) + ")");
}

}  // namespace tactus::box
