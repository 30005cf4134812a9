// The API's connections, counted by the host that they come from.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"

namespace tactus::service {

// gRPC gets connections handed over and does not say when one has ended. So the system is asked: a
// descriptor that has another socket than the one that was handed over, or none, is of a connection
// that is gone. It is asked only where a bound seems to be reached, and not more often than every
// kLook. One thread.
class Connections {
 public:
  static constexpr Duration kLook = std::chrono::milliseconds(20);
  // How often refusals are to be said, however many there are.
  static constexpr Duration kSay = std::chrono::seconds(1);

  struct Limits {
    std::size_t of_host = 1024;
    // Of all hosts: see OpenFilesShare.
    std::size_t all = 1u << 20;
  };
  explicit Connections(const Limits& limits) : limits_(limits) {}

  // Whether one more may be, which then counts. `socket` is its descriptor, which stays open until
  // gRPC closes it.
  enum class Verdict { kAdmitted, kTooManyOfHost, kTooMany };
  Verdict Admit(const std::string& host, int socket, Instant now);

  const Limits& limits() const { return limits_; }

  // Counts a refusal; returns how many there were since they were said last, where that is due.
  // 0: it is not.
  std::uint64_t CountRefusal(Instant now);

  // As far as it was looked.
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    int socket = -1;
    ino_t inode = 0;
  };
  void Look(std::vector<Entry>& entries);
  void LookAtAll(Instant now);

  const Limits limits_;
  std::map<std::string, std::vector<Entry>> hosts_;  // none is empty
  std::size_t size_ = 0;
  Instant looked_{};           // at all of them
  std::uint64_t refused_ = 0;  // and not said
  Instant said_{};
};

// What the API's connections may take of the files that this process may open: three quarters, so
// that the database, uploads and agents' results find theirs.
std::size_t OpenFilesShare();

}  // namespace tactus::service
