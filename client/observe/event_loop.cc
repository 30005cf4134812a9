#include "client/observe/event_loop.h"

#include <chrono>

#include "runtime/now.h"

namespace tactus::client {

EventLoop::EventLoop(const std::vector<int>& signals) : signals_(context_) {
  for (const int signal : signals) signals_.add(signal);
  AwaitSignal();
}

void EventLoop::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    ++interrupts_;
    AwaitSignal();
  });
}

EventLoop::Outcome EventLoop::RunUntil(const std::function<bool()>& done, Duration timeout) {
  const int interrupts_before = interrupts_;
  const Instant end = runtime::Now() + timeout;
  while (!done()) {
    if (interrupts_ > interrupts_before) return Outcome::kInterrupted;
    if (runtime::Now() >= end) return Outcome::kTimedOut;
    // Not longer: `done` may look at what no handler here tells of, such as a process that ended.
    context_.run_one_for(std::chrono::milliseconds(50));
  }
  return Outcome::kDone;
}

void EventLoop::Poll() { context_.poll(); }

}  // namespace tactus::client
