#include "agent/box/worker_user.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "runtime/process.h"

namespace tactus::box {
namespace {

// Nothing: no number of a user's.
std::optional<uid_t> Number(const std::string& text) {
  uid_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  // The last number stands for "none" in the system's calls.
  if (!whole || number == std::numeric_limits<uid_t>::max()) return std::nullopt;
  return number;
}

absl::Status Wrong(const std::string& text, const std::string& reason) {
  return absl::InvalidArgumentError("worker-user: '" + text + "': " + reason);
}

bool MayPass(const struct stat& folder, const WorkerUser& user) {
  if (folder.st_uid == user.uid) return (folder.st_mode & S_IXUSR) != 0;
  const bool of_group = folder.st_gid == user.gid ||
                        std::ranges::find(user.groups, folder.st_gid) != user.groups.end();
  return (folder.st_mode & (of_group ? S_IXGRP : S_IXOTH)) != 0;
}

}  // namespace

absl::StatusOr<WorkerUser> FindWorkerUser(const std::string& text) {
  WorkerUser user;
  const std::optional<uid_t> number = Number(text);
  const passwd* entry = number ? ::getpwuid(*number) : ::getpwnam(text.c_str());
  if (entry == nullptr && !number) return Wrong(text, "this host has no user of this name");
  user.uid = entry != nullptr ? entry->pw_uid : *number;
  user.gid = entry != nullptr ? entry->pw_gid : *number;
  if (user.uid == 0) return Wrong(text, "is root, who may everything; allowed is any other user");
  if (user.gid == 0) return Wrong(text, "its group is root's; allowed is a user of another group");
  if (::geteuid() != 0) {
    return absl::FailedPreconditionError("worker-user: '" + text +
                                         "': only an agent that runs as root can start workers as "
                                         "another user");
  }
  for (const char* name : {"video", "render"}) {
    const group* found = ::getgrnam(name);
    if (found != nullptr && found->gr_gid != 0) user.groups.push_back(found->gr_gid);
  }
  return user;
}

absl::Status CheckReachable(const std::string& place, const WorkerUser& user) {
  std::filesystem::path way;
  for (const std::filesystem::path& part : std::filesystem::path(place)) {
    way /= part;
    struct stat found = {};
    if (::stat(way.c_str(), &found) != 0) {
      return runtime::FileError(errno, way.string(), "cannot be looked at");
    }
    if (MayPass(found, user)) continue;
    return absl::FailedPreconditionError(place + ": " + way.string() +
                                         " is closed to the workers' user " +
                                         std::to_string(user.uid) + ", which has to get there");
  }
  return absl::OkStatus();
}

}  // namespace tactus::box
