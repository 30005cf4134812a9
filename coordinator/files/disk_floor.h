// The room on the disk that only checkpoints and results may use.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace tactus::service {

// What is brought in from outside stops at the floor; what jobs have made goes on below it, so that
// nobody's uploads keep another one's job from ending. Blocking; any thread.
class DiskFloor {
 public:
  // Where nothing is said: 1 GiB, and of a small disk a twentieth.
  DiskFloor(std::string folder, std::optional<std::uint64_t> bytes)
      : folder_(std::move(folder)), bytes_(bytes) {}

  // Whether `what` ("job", "upload") may come, and write so many bytes. A disk that cannot be asked
  // says so when it is written to. Errors: access::Bound::kDisk, with what is free and wanted.
  absl::Status Admit(const std::string& what, std::uint64_t bytes) const;

  // 0: it cannot be asked.
  std::uint64_t floor_bytes() const;

 private:
  const std::string folder_;
  const std::optional<std::uint64_t> bytes_;
};

}  // namespace tactus::service
