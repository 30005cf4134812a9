// The bytes of a file, read-only: memory-mapped, so that a data set may be larger than memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::data {

// A path between quotes, as messages show it; control characters are written \xNN, so that a
// message stays one line whatever a file is called.
std::string Quoted(const std::string& path);

// Status for a system call that failed on `path`, from its errno.
// NotFound: ENOENT, ENOTDIR; PermissionDenied: EACCES, EPERM; ResourceExhausted: no memory or
// descriptors left; InvalidArgument: any other.
absl::Status FileError(const std::string& path, int error);

// Ends a mapping of `size` bytes.
struct Unmap {
  std::size_t size = 0;
  void operator()(void* address) const;
};

// Owns the bytes of one file. Holds no descriptor once it is open, so the number of files is not
// bounded by the limit on descriptors. Move-only; a moved-from object may only be destroyed or
// assigned to. The file must not be shortened while it is in use: the kernel answers that with
// SIGBUS.
class MappedFile {
 public:
  // Smaller files are read into memory instead: the kernel allows a process 65530 mappings, and one
  // for every small file would take them from malloc and from libraries.
  static constexpr std::size_t kMappedBytesMin = 16384;

  // Opens a regular file (symbolic links are followed).
  // Errors: FileError's; InvalidArgument, a folder, a pipe or a device is there.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  // Bytes that were made from the file at `path`, such as its decompressed content.
  static MappedFile FromMemory(std::string path, std::vector<std::uint8_t> bytes);

  MappedFile(MappedFile&&) = default;
  MappedFile& operator=(MappedFile&&) = default;

  std::span<const std::uint8_t> bytes() const { return bytes_; }  // valid as long as this object
  const std::string& path() const { return path_; }

 private:
  explicit MappedFile(std::string path) : path_(std::move(path)) {}

  absl::Status Map(int descriptor, std::size_t size);
  absl::Status Copy(int descriptor, std::size_t size);

  std::string path_;
  std::unique_ptr<void, Unmap> mapping_;  // null when the bytes are in memory_
  std::vector<std::uint8_t> memory_;
  std::span<const std::uint8_t> bytes_;  // of mapping_ or of memory_
};

}  // namespace tactus::data
