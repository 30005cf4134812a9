// The main thread's loop: handlers, signals, and waiting for one of several things.

#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <vector>

#include "base/time.h"

namespace tactus::client {

// Counts the signals it was made for instead of letting them end the process, as long as it exists.
class EventLoop {
 public:
  explicit EventLoop(const std::vector<int>& signals);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  enum class Outcome { kDone, kInterrupted, kTimedOut };

  // For what has no other end than `done` or a signal.
  static constexpr Duration kForever = Seconds(1e9);

  // Runs handlers until `done` returns true, a signal arrives or `timeout` is over. `done` is asked
  // after every handler and every 50 ms.
  Outcome RunUntil(const std::function<bool()>& done, Duration timeout);

  // Handles what has arrived, without waiting.
  void Poll();

  // Signals received so far.
  int interrupts() const { return interrupts_; }

  boost::asio::io_context& context() { return context_; }

 private:
  void AwaitSignal();

  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_;
  int interrupts_ = 0;
};

}  // namespace tactus::client
