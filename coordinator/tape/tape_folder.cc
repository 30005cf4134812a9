#include "coordinator/tape/tape_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/time/time.h"
#include "runtime/process.h"

namespace tactus::tape {
namespace {

constexpr char kSuffix[] = ".tape";

// Oldest first: names sort by time.
std::vector<std::string> Tapes(const std::string& folder) {
  std::vector<std::string> names = runtime::NamesIn(folder);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
  std::ranges::sort(names);
  return names;
}

std::string NameOf(job::WallTime now) {
  return absl::FormatTime("%Y-%m-%dT%H-%M-%E3SZ", absl::FromUnixNanos(now), absl::UTCTimeZone()) +
         kSuffix;
}

}  // namespace

absl::StatusOr<std::string> MakeTapePath(const std::string& folder, job::WallTime now) {
  const absl::Status status = runtime::MakeWritableFolder(folder);
  if (!status.ok()) return status;
  const std::vector<std::string> tapes = Tapes(folder);
  std::error_code ignored;  // what cannot be removed does not keep the new one from being written
  for (std::size_t i = 0; i + kTapesMax <= tapes.size(); ++i) {
    std::filesystem::remove(folder + "/" + tapes[i], ignored);
  }
  return folder + "/" + NameOf(now);
}

absl::StatusOr<std::string> NewestTape(const std::string& folder) {
  const std::vector<std::string> tapes = Tapes(folder);
  if (tapes.empty()) return absl::NotFoundError(folder + ": there is no tape");
  return folder + "/" + tapes.back();
}

}  // namespace tactus::tape
