#include "coordinator/service/artifacts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/process.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kPathBytesMax = 255;
constexpr std::ptrdiff_t kNamesMax = 8;

// True when every name between slashes is there and is neither "." nor "..".
bool NamesAreProper(const std::string& path) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

absl::Status SyncFolder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return runtime::FileError(errno, folder, "cannot open");
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error == 0 ? absl::OkStatus() : runtime::FileError(error, folder, "cannot sync");
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

absl::StatusOr<ArtifactWriter> ArtifactWriter::Create(const std::string& folder,
                                                      const std::string& path) {
  const std::string whole = folder + "/" + path;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(whole).parent_path(), error);
  if (error) return runtime::FileError(error.value(), whole, "cannot create its folder");
  std::string beside = whole + ".XXXXXX";
  const int descriptor = ::mkostemp(beside.data(), O_CLOEXEC);
  if (descriptor < 0) return runtime::FileError(errno, whole, "cannot create");
  return ArtifactWriter(descriptor, beside, whole);
}

ArtifactWriter::ArtifactWriter(int descriptor, std::string beside, std::string path)
    : descriptor_(descriptor), beside_(std::move(beside)), path_(std::move(path)) {}

ArtifactWriter::ArtifactWriter(ArtifactWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      beside_(std::move(other.beside_)),
      path_(std::move(other.path_)),
      size_bytes_(other.size_bytes_) {}

ArtifactWriter::~ArtifactWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(beside_.c_str());
}

absl::Status ArtifactWriter::Write(const std::string& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::write(descriptor_, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return runtime::FileError(errno, path_, "cannot write");
    written += static_cast<std::size_t>(count);
  }
  size_bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status ArtifactWriter::Commit() {
  if (::fsync(descriptor_) != 0) return runtime::FileError(errno, path_, "cannot sync");
  if (::rename(beside_.c_str(), path_.c_str()) != 0) {
    return runtime::FileError(errno, path_, "cannot rename");
  }
  ::close(std::exchange(descriptor_, -1));
  return SyncFolder(std::filesystem::path(path_).parent_path());
}

absl::StatusOr<ArtifactReader> ArtifactReader::Open(const std::string& folder,
                                                    const std::string& path) {
  const std::string whole = folder + "/" + path;
  const int descriptor = ::open(whole.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return runtime::FileError(errno, path, "cannot open");
  ArtifactReader reader(descriptor, path);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return runtime::FileError(errno, path, "cannot open");
  if (!S_ISREG(status.st_mode)) return runtime::FileError(ENOENT, path, "not a file");
  return reader;
}

ArtifactReader::ArtifactReader(int descriptor, std::string path)
    : descriptor_(descriptor), path_(std::move(path)) {}

ArtifactReader::ArtifactReader(ArtifactReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

ArtifactReader::~ArtifactReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::StatusOr<std::string> ArtifactReader::Read(std::size_t bytes_max) {
  std::string bytes(bytes_max, '\0');
  ssize_t count = -1;
  do {
    count = ::read(descriptor_, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return runtime::FileError(errno, path_, "cannot read");
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

}  // namespace tactus::service
