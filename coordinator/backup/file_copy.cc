#include "coordinator/backup/file_copy.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/page_cache.h"
#include "coordinator/files/artifacts.h"
#include "runtime/arriving_file.h"
#include "runtime/process.h"

namespace tactus::backup {
namespace {

constexpr std::size_t kBytesAtOnce = 1u << 20;

// What is wrong with the file is told from what is wrong with the place of its copy.
absl::Status NotReadable(const FileCopy& copy, const absl::Status& status) {
  return absl::DataLossError(copy.folder + "/" + std::string(status.message()));
}

absl::Status AppendFetched(const FileCopy& copy, runtime::ArrivingFile& to) {
  const absl::Status fetched = copy.fetch([&](std::string_view bytes) {
    if (copy.cancelled()) return absl::CancelledError("copy: is not wanted any more");
    return to.Append(bytes);
  });
  return absl::IsNotFound(fetched) ? NotReadable(copy, fetched) : fetched;
}

absl::Status Append(const FileCopy& copy, runtime::ArrivingFile& to) {
  absl::StatusOr<service::ArtifactReader> from =
      service::ArtifactReader::Open(copy.folder, copy.name);
  // A file leaves the folder when it is elsewhere, never before; one that is open stays readable.
  if (absl::IsNotFound(from.status()) && copy.fetch) return AppendFetched(copy, to);
  if (!from.ok()) return NotReadable(copy, from.status());
  while (true) {
    if (copy.cancelled()) return absl::CancelledError("copy: is not wanted any more");
    const absl::StatusOr<std::string> bytes = from->Read(kBytesAtOnce);
    if (!bytes.ok()) return NotReadable(copy, bytes.status());
    if (bytes->empty()) return absl::OkStatus();
    absl::Status status = to.Append(*bytes);
    if (!status.ok()) return status;
  }
}

}  // namespace

absl::StatusOr<CopiedFile> CopyDurably(const FileCopy& copy) {
  const std::string folder = std::filesystem::path(copy.to).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::FileError(error.value(), folder, "cannot create the folder");
  const std::string partial = copy.to + ".partial";
  ::unlink(partial.c_str());
  absl::StatusOr<runtime::ArrivingFile> file = runtime::ArrivingFile::Open(partial);
  if (!file.ok()) return file.status();
  absl::Status status = Append(copy, *file);
  CopiedFile copied;
  if (status.ok()) {
    copied = {.sha256 = file->FinishHash(), .size_bytes = file->size_bytes()};
    if (!copy.sha256.empty() && copied.sha256 != copy.sha256) {
      status = absl::DataLossError(copy.folder + "/" + copy.name +
                                   ": is damaged: its content has " + "the hash " + copied.sha256);
    }
  }
  if (status.ok()) status = file->MoveTo(copy.to);
  if (!status.ok()) {
    file->Remove();
    return status;
  }
  // Nobody reads it soon; others' files are to stay in memory.
  DropCached(copy.to);
  return copied;
}

}  // namespace tactus::backup
