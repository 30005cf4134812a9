#include "agent/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"

namespace tactus::data {

std::string Quoted(const std::string& path) {
  std::string quoted = "'";
  for (const char c : path) {
    const unsigned char code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(code, absl::kZeroPad2));
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

absl::Status FileError(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(Quoted(path) + " was not found");
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(Quoted(path) + " may not be read by this user");
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          Quoted(path) + " cannot be opened: " + std::generic_category().message(error));
    default:
      return absl::InvalidArgumentError(
          Quoted(path) + " cannot be read: " + std::generic_category().message(error));
  }
}

void Unmap::operator()(void* address) const { ::munmap(address, size); }

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: a pipe that nobody writes to must give an error, not wait.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor.open()) return FileError(path, errno);
  struct stat status = {};
  if (::fstat(descriptor.get(), &status) != 0) return FileError(path, errno);
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(Quoted(path) + " is a folder, not a file");
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(Quoted(path) + " is a pipe or a device, not a file");
  }

  MappedFile file(path);
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  const absl::Status filled =
      size < kMappedBytesMin ? file.Copy(descriptor.get(), size) : file.Map(descriptor.get(), size);
  if (!filled.ok()) return filled;
  return file;
}

MappedFile MappedFile::FromMemory(std::string path, std::vector<std::uint8_t> bytes) {
  MappedFile file(std::move(path));
  file.memory_ = std::move(bytes);
  file.bytes_ = file.memory_;
  return file;
}

absl::Status MappedFile::Map(int descriptor, std::size_t size) {
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return FileError(path_, errno);
  mapping_ = std::unique_ptr<void, Unmap>(address, Unmap{size});
  bytes_ = {static_cast<const std::uint8_t*>(address), size};
  return absl::OkStatus();
}

absl::Status MappedFile::Copy(int descriptor, std::size_t size) {
  memory_.resize(size);
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t count = ::read(descriptor, memory_.data() + filled, size - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(path_, errno);
    if (count == 0) break;  // shortened since fstat: what is there now is its content
    filled += static_cast<std::size_t>(count);
  }
  memory_.resize(filled);
  bytes_ = memory_;
  return absl::OkStatus();
}

}  // namespace tactus::data
