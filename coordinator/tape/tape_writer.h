// Writes a tape: for a coordinator, for a simulation, for a test.

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "coordinator/tape/frames.h"

namespace tactus::tape {

// A file that grows up to a bound. Frames gather in memory until Flush, or until there are
// kBufferBytes of them; nothing is synced to the disk. A tape that is full has its end mark, and
// takes no more: Add and Close then do nothing and return ok.
//
//   absl::StatusOr<TapeWriter> tape = TapeWriter::Create(path, {.program_version = "0.1.0"});
//   tape->Add(Start{.records = restored, .time = now, .actions = actions});
//   tape->Add(Step{.event = event, .time = now, .actions = actions});
//   tape->Close();
//
// One thread at a time.
class TapeWriter {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  static constexpr std::uint64_t kBytesMin = 4096;
  static constexpr std::uint64_t kBytesDefault = std::uint64_t{256} << 20;

  // Makes the file, or empties one that is there. Requires: bytes_max >= kBytesMin.
  // Errors: as runtime::FileError.
  static absl::StatusOr<TapeWriter> Create(const std::string& path, const Header& header,
                                           std::uint64_t bytes_max = kBytesDefault);

  // The start comes first, once; then the steps in their order.
  // Errors: as the file system has them, once; the tape is then cut and takes no more.
  absl::Status Add(const Frame& frame);

  // Hands what gathered to the file system.
  absl::Status Flush();

  // Writes the end mark, if there is none, and flushes. A tape that is never closed has none.
  absl::Status Close(EndReason reason = EndReason::kClean);

  // Nothing more is taken: the end mark is written, or could not be.
  bool ended() const { return ended_; }

 private:
  TapeWriter(Descriptor file, const std::string& path, std::uint64_t bytes_max);

  Descriptor file_;
  const std::string path_;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;  // of the file and the buffer
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace tactus::tape
