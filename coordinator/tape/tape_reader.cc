#include "coordinator/tape/tape_reader.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/process.h"

namespace tactus::tape {
namespace {

constexpr std::uint64_t kFramesBeforeSteps = 2;  // header and start

}  // namespace

absl::StatusOr<TapeReader> TapeReader::Open(const std::string& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  if (!in) return runtime::FileError(errno, path, "cannot be read");
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(path + ": found a folder, allowed is a tape");
  }
  TapeReader reader(path, std::move(in));
  const absl::Status status = reader.CheckPreamble();
  if (!status.ok()) return status;
  return reader;
}

absl::Status TapeReader::CheckPreamble() {
  const std::string expected = Preamble();
  const std::string magic = expected.substr(0, expected.size() - sizeof(kFormatVersion));
  const std::string found = Read(kPreambleBytes);
  if (found.substr(0, magic.size()) != magic.substr(0, found.size())) {
    return absl::InvalidArgumentError(path_ + ": found another kind of file, allowed is a tape");
  }
  if (found.size() < kPreambleBytes) return Cut();
  if (found != expected) {
    std::uint32_t version = 0;
    for (std::size_t i = found.size(); i > magic.size(); --i) {
      version = version << 8 | static_cast<unsigned char>(found[i - 1]);
    }
    return absl::FailedPreconditionError(path_ + ": found a tape of format version " +
                                         std::to_string(version) + ", allowed is " +
                                         std::to_string(kFormatVersion));
  }
  offset_ = kPreambleBytes;
  return absl::OkStatus();
}

absl::StatusOr<Frame> TapeReader::Next() {
  const std::string prefix_bytes = Read(kPrefixBytes);
  if (prefix_bytes.size() < kPrefixBytes) return Cut();
  const absl::StatusOr<Prefix> prefix = DecodePrefix(prefix_bytes);
  if (!prefix.ok()) return Damaged(prefix.status());
  const std::string payload = Read(prefix->payload_bytes);
  if (payload.size() < prefix->payload_bytes) return Cut();
  absl::StatusOr<Frame> frame = DecodePayload(*prefix, payload);
  if (!frame.ok()) return Damaged(frame.status());
  if (!IsInPlace(*frame)) return Damaged(absl::DataLossError("its kind is out of order"));
  ++frames_;
  offset_ += kPrefixBytes + payload.size();
  if (std::holds_alternative<End>(*frame) && !Read(1).empty()) {
    return Damaged(absl::DataLossError("the end mark is not at the end"));
  }
  return frame;
}

// At most `count` bytes, fewer at the end of the file.
std::string TapeReader::Read(std::size_t count) {
  std::string bytes(count, '\0');
  in_.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(in_.gcount()));
  return bytes;
}

bool TapeReader::IsInPlace(const Frame& frame) const {
  if (frames_ == 0) return std::holds_alternative<Header>(frame);
  if (frames_ == 1) return std::holds_alternative<Start>(frame);
  return std::holds_alternative<Step>(frame) || std::holds_alternative<End>(frame);
}

std::string TapeReader::Place() const {
  const std::uint64_t events = frames_ - std::min(frames_, kFramesBeforeSteps);
  return "at byte " + std::to_string(offset_) + ", after event " + std::to_string(events);
}

absl::Status TapeReader::Cut() const {
  return absl::OutOfRangeError(path_ + ": found a tape that is cut short " + Place() +
                               ", allowed is one with its end mark");
}

absl::Status TapeReader::Damaged(const absl::Status& why) const {
  return absl::DataLossError(path_ + ": found a damaged frame " + Place() + " (" +
                             std::string(why.message()) + "), allowed is a tape as it was written");
}

}  // namespace tactus::tape
