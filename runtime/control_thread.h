// The one thread on which a daemon's state machine and its timers live.

#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "base/time.h"

namespace tactus::runtime {

// Runs an io_context on one thread from construction to Stop. Shutdown order of a daemon: stop the
// server with a deadline, let this thread answer what is in flight, then Stop().
class ControlThread {
 public:
  ControlThread();
  ~ControlThread();  // Stop()
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // Runs `task` on the thread, after what was posted before. From any thread. What is posted after
  // Stop is dropped.
  void Post(std::function<void()> task);

  // Posts `task` and waits until it has run. From another thread, before Stop.
  void RunAndWait(const std::function<void()>& task);

  // Runs what was posted so far, then ends the thread and waits for it. Pending timers never fire.
  // From another thread; the second call does nothing.
  void Stop();

  // For sockets, signals and the like that live on this thread.
  boost::asio::io_context& context() { return context_; }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

// One pending call in the future. Used on the control thread alone, and destroyed there or after
// Stop().
class Timer {
 public:
  explicit Timer(ControlThread& thread);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `task` once at `time`, or at once when that is past; replaces a call that is pending.
  void At(Instant time, std::function<void()> task);
  void After(Duration delay, std::function<void()> task);

  // No call happens after this, also one that is already due.
  void Cancel();

 private:
  boost::asio::steady_timer timer_;
  // Null when nothing is pending; shared with the handler that asio holds, which runs the task only
  // if it is still there.
  std::shared_ptr<std::function<void()>> task_;
};

}  // namespace tactus::runtime
