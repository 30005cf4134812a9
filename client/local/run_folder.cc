#include "client/local/run_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "protocol/result_names.h"
#include "runtime/now.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

constexpr char kRuns[] = "/runs";
constexpr char kLock[] = "/run.lock";

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

std::uint64_t BytesBelow(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_regular_file(entry->symlink_status(ignored))) bytes += entry->file_size(ignored);
  }
  return bytes;
}

// Somebody holds one of the locks that a run and its daemons have.
bool InUse(const std::string& folder) {
  for (const char* lock : {kLock, "/coordinator/lock", "/agent/agent.lock"}) {
    std::error_code ignored;
    if (!fs::exists(folder + lock, ignored)) continue;
    if (absl::IsUnavailable(runtime::LockFile::Acquire(folder + lock).status())) return true;
  }
  return false;
}

}  // namespace

// It is locked before it has its name, so that nobody takes it for one that is over.
absl::StatusOr<RunFolder> MakeRunFolder(const std::string& state_folder, const std::string& name) {
  const std::string runs = state_folder + kRuns;
  if (const absl::Status made = runtime::MakeWritableFolder(runs); !made.ok()) return made;
  std::string born = runs + "/.new-XXXXXX";
  if (::mkdtemp(born.data()) == nullptr) return runtime::FileError(errno, born, "cannot be made");
  absl::StatusOr<runtime::LockFile> lock = runtime::LockFile::Acquire(born + kLock);
  std::error_code error;
  const std::string base = runs + "/" + TimeStamp() + "-" + FolderName(name);
  constexpr int kAttemptsMax = 1000;
  for (int i = 1; lock.ok() && i <= kAttemptsMax; ++i) {
    const std::string folder = i == 1 ? base : base + "-" + std::to_string(i);
    if (fs::exists(folder, error)) continue;
    fs::rename(born, folder, error);
    if (!error) return RunFolder{.path = folder, .lock = *std::move(lock)};
    // Another run was faster: its folder is not empty.
    if (error != std::errc::directory_not_empty && error != std::errc::file_exists) break;
  }
  std::error_code ignored;
  fs::remove_all(born, ignored);
  if (!lock.ok()) return lock.status();
  if (error) return runtime::FileError(error.value(), base, "cannot be made");
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

std::vector<FormerRun> FormerRuns(const std::string& state_folder) {
  std::vector<FormerRun> runs;
  for (const std::string& name : runtime::NamesIn(state_folder + kRuns)) {
    const std::string path = state_folder + kRuns + "/" + name;
    std::error_code ignored;
    if (name.starts_with('.') || !fs::is_directory(path, ignored)) continue;
    runs.push_back({.path = path,
                    .bytes = BytesBelow(path),
                    .result_bytes = BytesBelow(path + "/result"),
                    .in_use = InUse(path)});
  }
  std::ranges::sort(runs, {}, &FormerRun::path);
  return runs;
}

absl::Status RemoveRun(const std::string& path, bool with_result) {
  if (InUse(path)) return absl::UnavailableError(path + ": is in use");
  if (!with_result) {
    CleanRunFolder(path, RunRemains::kResult);
    return absl::OkStatus();
  }
  std::error_code error;
  fs::remove_all(path, error);
  return error ? runtime::FileError(error.value(), path, "cannot be removed") : absl::OkStatus();
}

std::vector<std::string> FormerResult(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const char* name : protocol::kResultNames) {
    if (fs::exists(folder + "/" + name, ignored)) found.emplace_back(name);
  }
  return found;
}

// One that a run which was killed has left is no part of this one.
NewResult::NewResult(std::string target)
    : target_(std::move(target)), folder_(target_ + "/.new-result") {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

NewResult::~NewResult() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

absl::Status NewResult::Take() const {
  std::error_code error;
  for (const std::string& name : FormerResult(target_)) {
    fs::remove_all(target_ + "/" + name, error);
    if (error) return runtime::FileError(error.value(), target_ + "/" + name, "cannot be removed");
  }
  for (const std::string& name : runtime::NamesIn(folder_)) {
    fs::rename(folder_ + "/" + name, target_ + "/" + name, error);
    if (error) return runtime::FileError(error.value(), target_ + "/" + name, "cannot be written");
  }
  return absl::OkStatus();
}

}  // namespace tactus::client
