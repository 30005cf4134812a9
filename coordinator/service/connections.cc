#include "coordinator/service/connections.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace tactus::service {
namespace {

// 0: there is none.
ino_t InodeOf(int socket) {
  struct stat found {};
  return ::fstat(socket, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

Connections::Verdict Connections::Admit(const std::string& host, int socket, Instant now) {
  if (size_ >= limits_.all) LookAtAll(now);
  if (size_ >= limits_.all) return Verdict::kTooMany;
  std::vector<Entry>& entries = hosts_[host];
  // At most of_host of them: some 300 us for a thousand, and a host that is at its bound pays for
  // it with its own next connection alone.
  if (entries.size() >= limits_.of_host) Look(entries);
  if (entries.size() >= limits_.of_host) return Verdict::kTooManyOfHost;
  entries.push_back({.socket = socket, .inode = InodeOf(socket)});
  ++size_;
  return Verdict::kAdmitted;
}

std::uint64_t Connections::CountRefusal(Instant now) {
  ++refused_;
  if (said_ != Instant{} && now - said_ < kSay) return 0;
  said_ = now;
  return std::exchange(refused_, 0);
}

void Connections::Look(std::vector<Entry>& entries) {
  size_ -= std::erase_if(entries, [](const Entry& entry) {
    return entry.inode == 0 || InodeOf(entry.socket) != entry.inode;
  });
}

void Connections::LookAtAll(Instant now) {
  if (now - looked_ < kLook) return;
  looked_ = now;
  for (auto& [host, entries] : hosts_) Look(entries);
  std::erase_if(hosts_, [](const auto& host) { return host.second.empty(); });
}

std::size_t OpenFilesShare() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1u << 20;
  return std::max<std::size_t>(1, limit.rlim_cur / 4 * 3);
}

}  // namespace tactus::service
