#include "agent/worker/writer_thread.h"

#include <utility>

namespace tactus::worker {

using threads::MutexLock;

WriterThread::~WriterThread() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool WriterThread::idle() {
  const MutexLock lock(mutex_);
  return work_ == nullptr;
}

void WriterThread::Begin(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    work_ = std::move(work);
  }
  changed_.NotifyAll();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void WriterThread::Wait() {
  const MutexLock lock(mutex_);
  while (work_ != nullptr) changed_.Wait(mutex_);
}

void WriterThread::Run() {
  while (true) {
    std::function<void()> work;
    {
      const MutexLock lock(mutex_);
      while (work_ == nullptr && !closing_) changed_.Wait(mutex_);
      if (work_ == nullptr) return;
      work = work_;
    }
    work();
    {
      const MutexLock lock(mutex_);
      work_ = nullptr;
    }
    changed_.NotifyAll();
  }
}

}  // namespace tactus::worker
