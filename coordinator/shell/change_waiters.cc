#include "coordinator/shell/change_waiters.h"

#include <utility>
#include <vector>

namespace tactus::service {

bool ChangeWaiters::Add(Waiter waiter) {
  if (waiters_.size() >= kWaitersMax) return false;
  const void* const call = waiter.call;
  by_job_[waiter.job].insert(call);
  by_time_.emplace(waiter.until, call);
  waiters_.insert_or_assign(call, std::move(waiter));
  return true;
}

void ChangeWaiters::Remove(const void* call) {
  const auto found = waiters_.find(call);
  if (found == waiters_.end()) return;
  const auto others = by_job_.find(found->second.job);
  others->second.erase(call);
  if (others->second.empty()) by_job_.erase(others);
  by_time_.erase({found->second.until, call});
  waiters_.erase(found);
}

void ChangeWaiters::Wake(const void* call) {
  // Off the books before the call: what it wakes may wait anew.
  const std::function<void()> wake = std::move(waiters_.at(call).wake);
  Remove(call);
  wake();
}

void ChangeWaiters::Changed(JobId job, const std::string& etag) {
  const auto found = by_job_.find(job);
  if (found == by_job_.end()) return;
  // First gathered, as Wake() takes them out of the set.
  std::vector<const void*> woken;
  for (const void* call : found->second) {
    if (waiters_.at(call).etag != etag) woken.push_back(call);
  }
  for (const void* call : woken) Wake(call);
}

void ChangeWaiters::Gone(JobId job) {
  while (by_job_.contains(job)) Wake(*by_job_.at(job).begin());
}

void ChangeWaiters::Expire(Instant now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) Wake(by_time_.begin()->second);
}

std::optional<Instant> ChangeWaiters::next() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace tactus::service
