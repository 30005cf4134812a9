#include "coordinator/tape/tape_folder.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/process.h"

namespace tactus::tape {
namespace {

constexpr char kSuffix[] = ".tape";

// Oldest first: names sort by time.
std::vector<std::filesystem::path> Tapes(const std::string& folder) {
  std::vector<std::filesystem::path> tapes;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == kSuffix) tapes.push_back(entry->path());
  }
  std::sort(tapes.begin(), tapes.end());
  return tapes;
}

std::string NameOf(job::WallTime now) {
  const std::time_t seconds = now / 1'000'000'000;
  const auto milliseconds = static_cast<int>(now / 1'000'000 % 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char day_and_time[32];
  std::strftime(day_and_time, sizeof day_and_time, "%Y-%m-%dT%H-%M-%S", &parts);
  char rest[8];
  std::snprintf(rest, sizeof rest, ".%03dZ", milliseconds);
  return std::string(day_and_time) + rest + kSuffix;
}

}  // namespace

absl::StatusOr<std::string> MakeTapePath(const std::string& folder, job::WallTime now) {
  const absl::Status status = runtime::MakeWritableFolder(folder);
  if (!status.ok()) return status;
  const std::vector<std::filesystem::path> tapes = Tapes(folder);
  std::error_code ignored;  // what cannot be removed does not keep the new one from being written
  for (std::size_t i = 0; i + kTapesMax <= tapes.size(); ++i) {
    std::filesystem::remove(tapes[i], ignored);
  }
  return folder + "/" + NameOf(now);
}

absl::StatusOr<std::string> NewestTape(const std::string& folder) {
  const std::vector<std::filesystem::path> tapes = Tapes(folder);
  if (tapes.empty()) return absl::NotFoundError(folder + ": there is no tape");
  return tapes.back().string();
}

}  // namespace tactus::tape
