#include "runtime/control_thread.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <utility>

#include "runtime/now.h"

namespace tactus::runtime {

ControlThread::ControlThread()
    : guard_(boost::asio::make_work_guard(context_)), thread_([this] { context_.run(); }) {}

ControlThread::~ControlThread() { Stop(); }

void ControlThread::Post(std::function<void()> task) {
  boost::asio::post(context_, std::move(task));
}

void ControlThread::RunAndWait(const std::function<void()>& task) {
  std::promise<void> done;
  Post([&task, &done] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void ControlThread::Stop() {
  if (!thread_.joinable()) return;
  // Behind what was posted before, which still runs; timers that are set do not.
  Post([this] { context_.stop(); });
  guard_.reset();
  thread_.join();
}

Timer::Timer(ControlThread& thread) : timer_(thread.context()) {}

Timer::~Timer() { Cancel(); }

void Timer::At(Instant time, std::function<void()> task) {
  Cancel();
  task_ = std::make_shared<std::function<void()>>(std::move(task));
  timer_.expires_at(std::chrono::steady_clock::time_point(time.time_since_epoch()));
  timer_.async_wait([this, pending = std::weak_ptr<std::function<void()>>(task_)](
                        const boost::system::error_code& error) {
    // A wait that is over may be queued to run here when it is cancelled, or its timer destroyed:
    // then no error tells, but the task, which the timer alone holds, is gone.
    const std::shared_ptr<std::function<void()>> due = pending.lock();
    if (error || due == nullptr) return;
    task_.reset();
    (*due)();
  });
}

void Timer::After(Duration delay, std::function<void()> task) {
  At(Now() + delay, std::move(task));
}

void Timer::Cancel() {
  task_.reset();
  timer_.cancel();
}

}  // namespace tactus::runtime
