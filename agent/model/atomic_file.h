// A file that appears whole or not at all.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::model {

// Writes beside the target ("<path>.partial"), makes it durable and renames it. What was not
// committed is removed. One writer for a path at a time. Not thread-safe.
//
// Errors of all calls, beginning with the path: NotFound, the folder is not there;
// PermissionDenied; ResourceExhausted, the disk is full or over its quota; Internal, anything else.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Open(const std::string& path);

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends. After an error every later call returns that error.
  absl::Status Append(const void* bytes, std::size_t size);

  // Returns once the file is on disk under its name. Call it once, last.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, Descriptor file);
  absl::Status Fail(const std::string& what);

  const std::string path_;
  const std::string partial_;
  Descriptor file_;  // none once committed
  absl::Status error_;
};

}  // namespace tactus::model
