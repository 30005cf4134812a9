#include "coordinator/files/artifacts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/beneath.h"
#include "runtime/process.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kPathBytesMax = 255;
constexpr std::ptrdiff_t kNamesMax = 8;

// True when every name between slashes is there and is neither "." nor "..".
bool NamesAreProper(const std::string& path) {
  const std::vector<std::string> names = absl::StrSplit(path, '/');
  return std::ranges::none_of(
      names, [](const std::string& name) { return name.empty() || name == "." || name == ".."; });
}

}  // namespace

std::string ResultFolder(const std::string& state_folder, const std::string& job_id) {
  return state_folder + "/jobs/" + job_id + "/result";
}

absl::Status CheckArtifactPath(const std::string& field, const std::string& path) {
  const bool printable =
      std::ranges::all_of(path, [](const char c) { return c > ' ' && c < 127 && c != '\\'; });
  if (path.size() <= kPathBytesMax && printable && NamesAreProper(path) &&
      std::ranges::count(path, '/') < kNamesMax) {
    return absl::OkStatus();
  }
  return runtime::InvalidFields(
      {{.field = field,
        .description = "found \"" + (printable ? path.substr(0, 120) : "unprintable characters") +
                       "\", allowed is a relative path within the result, without . and .."}});
}

absl::StatusOr<ArtifactReader> ArtifactReader::Open(const std::string& folder,
                                                    const std::string& path) {
  const Descriptor opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open()) return runtime::FileError(errno, path, "cannot open");
  // A pipe that nobody writes to is not waited for.
  absl::StatusOr<Descriptor> file = runtime::OpenBeneath(opened.get(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.status();
  struct stat status = {};
  if (::fstat(file->get(), &status) != 0) return runtime::FileError(errno, path, "cannot open");
  if (!S_ISREG(status.st_mode)) return runtime::FileError(ENOENT, path, "not a file");
  return ArtifactReader(*std::move(file), path);
}

absl::Status ArtifactReader::Skip(std::uint64_t bytes) {
  struct stat status = {};
  if (::fstat(file_.get(), &status) != 0) return runtime::FileError(errno, path_, "cannot read");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (bytes > size) {
    return absl::OutOfRangeError("offset: found " + std::to_string(bytes) +
                                 ", allowed is at most the file's size, " + std::to_string(size));
  }
  if (::lseek(file_.get(), static_cast<off_t>(bytes), SEEK_SET) < 0) {
    return runtime::FileError(errno, path_, "cannot read");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ArtifactReader::Read(std::size_t bytes_max) {
  std::string bytes(bytes_max, '\0');
  ssize_t count = -1;
  do {
    count = ::read(file_.get(), bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return runtime::FileError(errno, path_, "cannot read");
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

}  // namespace tactus::service
