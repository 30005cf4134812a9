#include "client/local/run_folder.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

std::string TimeStamp() {
  const std::time_t seconds = runtime::WallNow() / 1'000'000'000;
  std::tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "run";
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return std::string(text.data(), length);
}

// The part of a job's name that may be part of a path.
std::string FolderName(const std::string& name) {
  constexpr std::size_t kNameMax = 24;
  std::string out;
  for (const char c : name.substr(0, kNameMax)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    out += plain ? c : '_';
  }
  return out.empty() ? "job" : out;
}

// Logs in which something stands.
bool IsLog(const fs::path& path) {
  std::error_code ignored;
  return path.extension() == ".log" && !fs::is_empty(path, ignored);
}

// Post-order, so that folders are seen after what is in them.
void Clean(const fs::path& folder, RunRemains remains) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry.path());
  for (const fs::path& path : entries) {
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      Clean(path, remains);
    } else if (remains != RunRemains::kLogs || !IsLog(path)) {
      fs::remove(path, ignored);
    }
  }
  fs::remove(folder, ignored);  // fails, as it should, when it is not empty
}

}  // namespace

absl::StatusOr<std::string> MakeRunFolder(const std::string& state_folder,
                                          const std::string& name) {
  const std::string runs = state_folder + "/runs";
  if (const absl::Status made = runtime::MakeWritableFolder(runs); !made.ok()) return made;
  const std::string base = runs + "/" + TimeStamp() + "-" + FolderName(name);
  constexpr int kAttemptsMax = 1000;
  for (int i = 1; i <= kAttemptsMax; ++i) {
    const std::string folder = i == 1 ? base : base + "-" + std::to_string(i);
    std::error_code error;
    if (fs::create_directory(folder, error)) {
      fs::permissions(folder, fs::perms::owner_all, error);
      return folder;
    }
    if (error) return runtime::FileError(error.value(), folder, "cannot be made");
  }
  return absl::ResourceExhaustedError(base + ": too many runs in one second");
}

void CleanRunFolder(const std::string& folder, RunRemains remains) {
  std::error_code ignored;
  const fs::path result = fs::path(folder) / "result";
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry.path());
  for (const fs::path& path : entries) {
    if (path == result) {
      fs::remove(path, ignored);  // only when it is empty
    } else if (fs::is_directory(fs::symlink_status(path, ignored))) {
      Clean(path, remains);
    } else if (remains != RunRemains::kLogs || !IsLog(path)) {
      fs::remove(path, ignored);
    }
  }
  fs::remove(folder, ignored);
}

}  // namespace tactus::client
