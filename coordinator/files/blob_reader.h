// Reads a file from wherever it lies.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/files/artifacts.h"

namespace tactus::service {

// One file from an offset on. Made, used and destroyed on the files' thread.
class BlobReader {
 public:
  using Took = std::function<void(absl::StatusOr<std::string>)>;

  virtual ~BlobReader() = default;

  // The next at most `bytes_max` bytes, and at least one; empty at the end. `took` is called once,
  // on the files' thread, at once or later, and not at all where the reader is gone by then. Only
  // after the former was called. Errors: NotFound, it is gone; DataLoss, it has not the hash that
  // it is known by; Unavailable; as the file system has them.
  virtual void Read(std::size_t bytes_max, Took took) = 0;
};

// Of a folder: at once.
class FileReader final : public BlobReader {
 public:
  explicit FileReader(ArtifactReader reader) : reader_(std::move(reader)) {}
  void Read(std::size_t bytes_max, Took took) override { took(reader_.Read(bytes_max)); }

 private:
  ArtifactReader reader_;
};

}  // namespace tactus::service
