// A file that appears whole or not at all.

#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::tensors {

// Writes beside the target ("<path>.partial"), makes it durable and renames it. What was not
// committed is removed. It goes to the disk as it comes, a piece at a time: a long file takes no
// memory from others, its end does not take long, and whoever stops it waits for a piece. One
// writer for a path at a time. Not thread-safe.
//
// Errors of all calls, beginning with the path: NotFound, the folder is not there;
// PermissionDenied; ResourceExhausted, the disk is full or over its quota; Cancelled, it was
// stopped; Internal, anything else.
class AtomicFile {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

  // stop: may be requested by another thread.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Open(const std::string& path,
                                                          std::stop_token stop = {});

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends. After an error every later call returns that error.
  absl::Status Append(const void* bytes, std::size_t size);

  // Returns once the file is on disk under its name. Call it once, last.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, Descriptor file, std::stop_token stop);
  absl::Status Fail(const std::string& what);
  absl::Status Sync();

  const std::string path_;
  const std::string partial_;
  Descriptor file_;  // none once committed
  const std::stop_token stop_;
  std::size_t unsynced_ = 0;  // bytes
  absl::Status error_;
};

}  // namespace tactus::tensors
