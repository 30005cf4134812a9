#include "agent/daemon/job_folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/process.h"

namespace tactus::agent {
namespace {

// No job's id begins with a dot.
constexpr char kRemovedPrefix[] = ".removed-";

}  // namespace

JobFolders::JobFolders(Options options) : options_(std::move(options)) {
  for (const std::string& name : runtime::NamesIn(options_.folder)) {
    if (name.starts_with(kRemovedPrefix)) RemoveLater(PathOf(name));
  }
}

JobFolders::~JobFolders() {
  thread_.stop();
  thread_.join();
}

std::string JobFolders::UnsentMark(const std::string& job) const {
  return PathOf(job) + "/result-not-sent";
}

void JobFolders::Touch(const std::string& job) const {
  ::utimensat(AT_FDCWD, PathOf(job).c_str(), nullptr, 0);
}

void JobFolders::BeginSend(const std::string& job) {
  ++sending_[job].files;
  const int mark = ::open(UnsentMark(job).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (mark >= 0) ::close(mark);  // without it, the folder is kept for less
}

void JobFolders::EndSend(const std::string& job, bool arrived) {
  Sending& sending = sending_[job];
  sending.lost |= !arrived;
  if (--sending.files > 0) return;
  if (!sending.lost) ::unlink(UnsentMark(job).c_str());
  sending_.erase(job);
  Touch(job);
}

bool JobFolders::IsOld(const std::string& job, std::int64_t now) const {
  struct stat found = {};
  if (::lstat(PathOf(job).c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return false;
  const std::int64_t touched =
      std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  const bool unsent = ::access(UnsentMark(job).c_str(), F_OK) == 0;
  return now - touched >= (unsent ? options_.keep_unsent : options_.keep).count();
}

void JobFolders::RemoveCheckpoints(const std::string& job) {
  const std::string left = ResultFolder(options_.folder, job) + "/checkpoints";
  const std::string gone = PathOf(kRemovedPrefix + job + "-checkpoints");
  if (std::rename(left.c_str(), gone.c_str()) == 0) RemoveLater(gone);
}

void JobFolders::RemoveScratch(const std::string& job, const std::string& worker) {
  const std::string left = PathOf(job) + "/scratch-" + worker;
  const std::string gone = PathOf(kRemovedPrefix + job + "-scratch-" + worker);
  if (std::rename(left.c_str(), gone.c_str()) == 0) RemoveLater(gone);
}

std::size_t JobFolders::Sweep(const std::set<std::string>& in_use, std::int64_t now) {
  std::size_t removed = 0;
  for (const std::string& job : runtime::NamesIn(options_.folder)) {
    if (job.starts_with('.')) continue;
    if (in_use.contains(job) || sending_.contains(job)) {
      Touch(job);
    } else if (IsOld(job, now)) {
      const std::string gone = PathOf(kRemovedPrefix + job);
      if (std::rename(PathOf(job).c_str(), gone.c_str()) != 0) continue;
      RemoveLater(gone);
      ++removed;
    }
  }
  return removed;
}

void JobFolders::RemoveLater(const std::string& path) {
  boost::asio::post(thread_, [path] {
    std::error_code ignored;  // the next agent tries again
    std::filesystem::remove_all(path, ignored);
  });
}

}  // namespace tactus::agent
