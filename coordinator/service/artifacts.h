// The files of a job's result in the coordinator's state folder.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::service {

// <state>/jobs/<id>/result.
std::string ResultFolder(const std::string& state_folder, const std::string& job_id);

// A path of 1 to 8 names that stays within the result: relative, without empty, "." and ".." names,
// of printable ASCII, at most 255 bytes. Errors: InvalidArgument with the field `field`.
absl::Status CheckArtifactPath(const std::string& field, const std::string& path);

// Writes one file beside its place; it appears whole at Commit or not at all. Blocking; one thread
// at a time.
class ArtifactWriter {
 public:
  // Errors: as the file system has them. Requires: CheckArtifactPath(path).
  static absl::StatusOr<ArtifactWriter> Create(const std::string& folder, const std::string& path);

  ArtifactWriter(ArtifactWriter&& other) noexcept;
  ArtifactWriter& operator=(ArtifactWriter&&) = delete;
  ~ArtifactWriter();  // without Commit: removes what was written

  absl::Status Write(const std::string& bytes);
  std::uint64_t size_bytes() const { return size_bytes_; }

  // Syncs, renames, syncs the folder.
  absl::Status Commit();

 private:
  ArtifactWriter(int descriptor, std::string beside, std::string path);

  int descriptor_;  // -1: committed or moved from
  std::string beside_;
  std::string path_;
  std::uint64_t size_bytes_ = 0;
};

// Reads one file of a result. Blocking; one thread at a time.
class ArtifactReader {
 public:
  // Errors: NotFound, and as the file system has them. Requires: CheckArtifactPath(path).
  static absl::StatusOr<ArtifactReader> Open(const std::string& folder, const std::string& path);

  ArtifactReader(ArtifactReader&& other) noexcept;
  ArtifactReader& operator=(ArtifactReader&&) = delete;
  ~ArtifactReader();

  // The next at most `bytes_max` bytes; empty at the end.
  absl::StatusOr<std::string> Read(std::size_t bytes_max);

 private:
  ArtifactReader(int descriptor, std::string path);

  int descriptor_;  // -1: moved from
  std::string path_;
};

}  // namespace tactus::service
