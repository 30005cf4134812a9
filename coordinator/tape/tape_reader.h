// Reads a tape, frame by frame.

#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/tape/frames.h"

namespace tactus::tape {

// One thread at a time.
class TapeReader {
 public:
  // Errors: NotFound or PermissionDenied, as the file system has it; InvalidArgument, not a tape;
  // FailedPrecondition, of another format; OutOfRange, cut short. Messages begin with the path.
  static absl::StatusOr<TapeReader> Open(const std::string& path);

  // The next frame: header, start, steps, end. Not to be called after the end or an error.
  // Errors: OutOfRange, the tape is cut short here; DataLoss, a frame is damaged.
  absl::StatusOr<Frame> Next();

 private:
  TapeReader(const std::string& path, std::ifstream in) : path_(path), in_(std::move(in)) {}

  std::string Read(std::size_t count);
  absl::Status CheckPreamble();
  bool IsInPlace(const Frame& frame) const;
  std::string Place() const;
  absl::Status Cut() const;
  absl::Status Damaged(const absl::Status& why) const;

  std::string path_;
  std::ifstream in_;
  std::uint64_t offset_ = 0;  // of the frame that is read
  std::uint64_t frames_ = 0;  // before it
};

}  // namespace tactus::tape
