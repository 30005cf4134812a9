// A file that comes in pieces, perhaps over several attempts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "runtime/sha256.h"

namespace tactus::runtime {

// What a file that is known by its content may have at most, wherever it arrives.
inline constexpr std::uint64_t kBlobBytesMax = std::uint64_t{64} << 30;

// Written at a place of its own and moved to its final one when its hash is known to be right. What
// came before a break stays for the next attempt. Errors: as FileError. Blocking; one thread at a
// time, and one object a file.
class ArrivingFile {
 public:
  // Goes on with the file at `path`, or begins it; its folder exists.
  static absl::StatusOr<ArrivingFile> Open(const std::string& path);

  // Hashes at most `bytes_max` bytes of what an earlier attempt left; true: there are no more, and
  // Append may begin. To be called again and again, so that a long file holds up nobody else.
  absl::StatusOr<bool> CatchUp(std::size_t bytes_max);

  // Requires: CatchUp said true.
  absl::Status Append(std::string_view bytes);

  // Bytes that have come, over all attempts.
  std::uint64_t size_bytes() const { return size_bytes_; }

  // SHA-256 of all of it. Once; nothing is appended afterwards.
  std::string FinishHash() { return hash_.Finish(); }

  // Makes it durable at `path`, whose folder is made when missing.
  absl::Status MoveTo(const std::string& path);

  // Removes it: what came is of no use.
  void Remove();

 private:
  ArrivingFile(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;  // none: moved, removed or moved from
  std::string path_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t hashed_bytes_ = 0;
  Sha256 hash_;
};

// Makes what was created in, moved to or removed from `folder` durable.
absl::Status SyncFolder(const std::string& folder);

}  // namespace tactus::runtime
