#include "coordinator/tape/tape_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "runtime/process.h"

namespace tactus::tape {
namespace {

// Kept free for the end mark.
constexpr std::uint64_t kEndBytes = 64;

}  // namespace

absl::StatusOr<TapeWriter> TapeWriter::Create(const std::string& path, const Header& header,
                                              std::uint64_t bytes_max) {
  TACTUS_CHECK(bytes_max >= kBytesMin);
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.open()) return runtime::FileError(errno, path, "cannot be made");
  TapeWriter tape(std::move(file), path, bytes_max);
  const absl::Status status = tape.Add(header);
  if (!status.ok()) return status;
  return tape;
}

TapeWriter::TapeWriter(Descriptor file, const std::string& path, std::uint64_t bytes_max)
    : file_(std::move(file)), path_(path), bytes_max_(bytes_max), buffer_(Preamble()) {
  bytes_ = buffer_.size();
}

absl::Status TapeWriter::Add(const Frame& frame) {
  if (ended_) return absl::OkStatus();
  const std::string bytes = EncodeFrame(frame);
  if (bytes.size() > kPrefixBytes + kPayloadBytesMax ||
      bytes_ + bytes.size() + kEndBytes > bytes_max_) {
    return Close(EndReason::kFull);
  }
  bytes_ += bytes.size();
  buffer_ += bytes;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status TapeWriter::Flush() {
  std::size_t written = 0;
  while (written < buffer_.size()) {
    const ssize_t count = write(file_.get(), buffer_.data() + written, buffer_.size() - written);
    if (count < 0 && errno != EINTR) {
      ended_ = true;
      buffer_.clear();
      return runtime::FileError(errno, path_, "cannot be written");
    }
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status TapeWriter::Close(EndReason reason) {
  if (!std::exchange(ended_, true)) buffer_ += EncodeFrame(End{.reason = reason});
  return Flush();
}

}  // namespace tactus::tape
