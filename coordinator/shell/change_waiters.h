// Calls that wait until a job changes.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/id.h"
#include "base/time.h"

namespace tactus::service {

// Each waiter is woken once, and is gone then. One thread.
class ChangeWaiters {
 public:
  static constexpr std::size_t kWaitersMax = 10'000;

  struct Waiter {
    const void* call = nullptr;  // whose it is; one a call
    JobId job{};
    std::string etag{};  // woken once the job's is another
    Instant until{};     // or then
    std::function<void()> wake{};
  };

  // False, and nothing changed, when kWaitersMax wait.
  [[nodiscard]] bool Add(Waiter waiter);

  // The call is not interested any more; nothing when it does not wait.
  void Remove(const void* call);

  // The job's etag is this one now.
  void Changed(JobId job, const std::string& etag);
  // The job is no more, whatever its waiters saw of it.
  void Gone(JobId job);

  void Expire(Instant now);
  // When Expire has something to do; empty: never.
  std::optional<Instant> next() const;

  std::size_t size() const { return waiters_.size(); }

 private:
  void Wake(const void* call);

  std::map<const void*, Waiter> waiters_;
  std::map<JobId, std::set<const void*>> by_job_;  // no empty sets
  std::set<std::pair<Instant, const void*>> by_time_;
};

}  // namespace tactus::service
