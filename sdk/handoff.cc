#include "sdk/handoff.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace tactus::sdk {
namespace {

constexpr auto kLookFor = std::chrono::microseconds(100);

}  // namespace

Answer Handoff::Ask(const Request& request) {
  threads::MutexLock lock(mutex_);
  if (!closed_.ok()) return {.status = closed_};
  request_ = &request;
  asks_.store(true, std::memory_order_release);
  changed_.NotifyAll();
  while (!answer_ && closed_.ok()) changed_.Wait(mutex_);
  request_ = nullptr;
  if (!answer_) return {.status = closed_};
  return *std::exchange(answer_, std::nullopt);
}

const Request* Handoff::Await(Duration limit) {
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + limit;
  while (!asks_.load(std::memory_order_acquire) &&
         std::chrono::steady_clock::now() < std::min(end, begin + kLookFor)) {
    continue;
  }
  threads::MutexLock lock(mutex_);
  while (request_ == nullptr || answer_) {
    if (!changed_.WaitUntil(mutex_, end)) return nullptr;
  }
  return request_;
}

void Handoff::Reply(Answer answer) {
  threads::MutexLock lock(mutex_);
  TACTUS_CHECK(request_ != nullptr && !answer_);
  answer_ = std::move(answer);
  asks_.store(false, std::memory_order_release);
  changed_.NotifyAll();
}

void Handoff::Close(const absl::Status& status) {
  threads::MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = status;
  changed_.NotifyAll();
}

}  // namespace tactus::sdk
