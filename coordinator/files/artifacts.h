// The files of a job's result as users name them, and what reads a file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::service {

// <state>/jobs/<id>/result: where versions before the blobs kept results.
std::string ResultFolder(const std::string& state_folder, const std::string& job_id);

// A path of 1 to 8 names that stays within the result: relative, without empty, "." and ".." names,
// of printable ASCII, at most 255 bytes. Errors: InvalidArgument with the field `field`.
absl::Status CheckArtifactPath(const std::string& field, const std::string& path);

// Reads one file of a folder. Blocking; one thread at a time.
class ArtifactReader {
 public:
  // Errors: NotFound, PermissionDenied, a link is on the way, and as the file system has them.
  // Requires: CheckArtifactPath(path).
  static absl::StatusOr<ArtifactReader> Open(const std::string& folder, const std::string& path);

  // Leaves out the first `bytes`. Errors: OutOfRange, the file is shorter.
  absl::Status Skip(std::uint64_t bytes);

  // The next at most `bytes_max` bytes; empty at the end.
  absl::StatusOr<std::string> Read(std::size_t bytes_max);

 private:
  ArtifactReader(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;
  std::string path_;
};

}  // namespace tactus::service
