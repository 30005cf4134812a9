// How the members of a group in one process learn each other's endpoints.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace tactus::collective {

// Where the members of a group leave and find their endpoints, once. A thread a member.
class EndpointBoard {
 public:
  explicit EndpointBoard(int size) : endpoints_(static_cast<std::size_t>(size)) {}

  // Waits until all have come; returns theirs by rank.
  std::vector<std::string> Exchange(int rank, const std::string& own) {
    std::unique_lock lock(mutex_);
    endpoints_[static_cast<std::size_t>(rank)] = own;
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return arrived_ == endpoints_.size(); });
    return endpoints_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> endpoints_;
  std::size_t arrived_ = 0;
};

}  // namespace tactus::collective
