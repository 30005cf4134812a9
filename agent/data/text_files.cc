#include "agent/data/text_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/folder.h"
#include "agent/data/mapped_file.h"

namespace tactus::data {
namespace {

// Collects the files below one folder. A list of folders to visit stands in for recursion.
class FolderWalk {
 public:
  explicit FolderWalk(std::string root) : root_(std::move(root)) {}

  absl::Status Run() {
    struct stat status = {};
    if (::stat(root_.c_str(), &status) != 0) return FileError(root_, errno);
    AddFolder(root_, status);
    while (!pending_.empty()) {
      const std::string folder = std::move(pending_.back());
      pending_.pop_back();
      if (absl::Status visited = Visit(folder); !visited.ok()) return visited;
    }
    return absl::OkStatus();
  }

  std::vector<std::string> TakeFiles() { return std::move(files_); }

 private:
  absl::Status Visit(const std::string& folder) {
    const absl::StatusOr<std::vector<std::string>> names = ListNames(folder);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (absl::Status added = AddEntry(JoinPath(folder, name)); !added.ok()) return added;
    }
    return absl::OkStatus();
  }

  absl::Status AddEntry(std::string path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ELOOP) return absl::OkStatus();  // a link to nothing
      return FileError(path, errno);
    }
    if (S_ISDIR(status.st_mode)) AddFolder(path, status);
    if (!S_ISREG(status.st_mode)) return absl::OkStatus();
    if (files_.size() == kTextFilesMax) {
      return absl::InvalidArgumentError(Quoted(root_) + " holds more than " +
                                        std::to_string(kTextFilesMax) + " files");
    }
    files_.push_back(std::move(path));
    return absl::OkStatus();
  }

  void AddFolder(const std::string& path, const struct stat& status) {
    if (seen_.insert({status.st_dev, status.st_ino}).second) pending_.push_back(path);
  }

  const std::string root_;
  std::vector<std::string> pending_;  // folders yet to visit
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::string> files_;
};

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  FolderWalk walk(path);
  if (absl::Status walked = walk.Run(); !walked.ok()) return walked;
  std::vector<std::string> files = walk.TakeFiles();
  if (files.empty()) {
    return absl::InvalidArgumentError(Quoted(path) +
                                      " is a folder without files (hidden ones are skipped)");
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<std::string>> ListMatches(const std::string& pattern) {
  glob_t matches = {};
  const int outcome = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE, nullptr, &matches);
  std::vector<std::string> files;
  for (std::size_t i = 0; outcome == 0 && i < matches.gl_pathc; ++i) {
    struct stat status = {};
    const char* const path = matches.gl_pathv[i];
    if (::stat(path, &status) == 0 && S_ISREG(status.st_mode)) files.emplace_back(path);
  }
  ::globfree(&matches);
  if (outcome == GLOB_NOSPACE) return FileError(pattern, ENOMEM);
  if (files.empty()) return absl::NotFoundError("no file matches " + Quoted(pattern));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListTextFiles(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return ListFolder(path);
    return std::vector<std::string>{path};
  }
  const int error = errno;
  const bool is_pattern = path.find_first_of("*?[{") != std::string::npos;
  if (is_pattern && error == ENOENT) return ListMatches(path);
  return FileError(path, error);
}

}  // namespace tactus::data
