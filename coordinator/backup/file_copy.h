// Copies one file so that it outlives a crash.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::backup {

struct FileCopy {
  std::string folder{};               // where the file lies
  std::string name{};                 // the file, within it
  std::string to{};                   // where its copy is to lie; nothing is there
  std::string sha256{};               // what its content has; empty: not known
  std::function<bool()> cancelled{};  // asked now and then
  // Where the file does not lie in the folder, or no more: gives all of it to `take`, piece by
  // piece. Empty: it lies nowhere else.
  using Take = std::function<absl::Status(std::string_view)>;
  std::function<absl::Status(const Take& take)> fetch{};
};

struct CopiedFile {
  std::string sha256{};
  std::uint64_t size_bytes = 0;
};

// Copies a file; the copy is whole, durable and hashed, or not there. Makes the folder that it is
// to lie in. Blocking; any thread. Errors: DataLoss, the file is not there, cannot be read or has
// another hash; Cancelled; what fetching fails with otherwise, and writing, as runtime::FileError.
absl::StatusOr<CopiedFile> CopyDurably(const FileCopy& copy);

}  // namespace tactus::backup
