#include "agent/collective/launch_order.h"

#include "base/check.h"

namespace tactus::collective {

void LaunchOrder::Enter(const void* group) {
  const threads::MutexLock lock(mutex_);
  if (!gone_.contains(group)) waiting_.push_back(group);
}

bool LaunchOrder::AwaitTurn(const void* group, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const threads::MutexLock lock(mutex_);
  const auto is_next = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !waiting_.empty() && waiting_.front() == group;
  };
  while (!is_next() && std::chrono::steady_clock::now() < end) changed_.WaitUntil(mutex_, end);
  return is_next();
}

void LaunchOrder::Launched(const void* group) {
  const threads::MutexLock lock(mutex_);
  TACTUS_CHECK(!waiting_.empty() && waiting_.front() == group);
  waiting_.pop_front();
  changed_.NotifyAll();
}

void LaunchOrder::Leave(const void* group) {
  const threads::MutexLock lock(mutex_);
  gone_.insert(group);
  std::erase(waiting_, group);
  changed_.NotifyAll();
}

}  // namespace tactus::collective
