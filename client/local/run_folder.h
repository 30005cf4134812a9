// The folders of `tactus run`: of one that runs, and of those before.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/process.h"

namespace tactus::client {

// The folder of a run that goes on.
struct RunFolder {
  std::string path{};
  runtime::LockFile lock;  // by which others see that it is in use
};

// Makes STATE/runs/TIME-NAME, private to the user; a number is added when it exists. `name` is
// shortened, because sockets in it must have short paths. Errors: as runtime::MakeWritableFolder.
absl::StatusOr<RunFolder> MakeRunFolder(const std::string& state_folder, const std::string& name);

// What is left of a run's folder.
enum class RunRemains {
  kResult,  // the sub-folder result/
  kLogs,    // the files *.log that are not empty, wherever they are, and result/
};

// Removes everything else, and what is then empty, the folder included.
void CleanRunFolder(const std::string& folder, RunRemains remains);

// What a former run left below STATE/runs.
struct FormerRun {
  std::string path{};
  std::uint64_t bytes = 0;         // of all its files
  std::uint64_t result_bytes = 0;  // of those below result/
  bool in_use = false;             // by a run, coordinator or agent that goes on
};

// By name, which begins with the time.
std::vector<FormerRun> FormerRuns(const std::string& state_folder);

// Removes a former run's folder, or all of it but its result. Errors: Unavailable, it is in use;
// of the file system.
absl::Status RemoveRun(const std::string& path, bool with_result);

// What is in `folder` of a former run's result, by the names that a result has.
std::vector<std::string> FormerResult(const std::string& folder);

// A result that is on its way to a folder which may have a former one, in a folder of its own
// there, which goes with this.
class NewResult {
 public:
  explicit NewResult(std::string target);
  ~NewResult();
  NewResult(const NewResult&) = delete;
  NewResult& operator=(const NewResult&) = delete;

  // Where it is put, whole, before Take.
  const std::string& folder() const { return folder_; }

  // It takes the place of the former result, and of nothing else there. Errors: of the file system.
  absl::Status Take() const;

 private:
  const std::string target_;
  const std::string folder_;
};

}  // namespace tactus::client
