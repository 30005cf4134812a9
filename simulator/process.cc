#include "simulator/process.h"

#include <algorithm>
#include <utility>

namespace tactus::simulator {

Process::Process(Scheduler& scheduler, std::function<void()> body)
    : scheduler_(scheduler), fiber_(std::move(body)), waiting_(true) {
  Wake();
}

bool Process::SleepUntil(Instant time, WaitReason reason) {
  if (killed_) return false;
  waiting_ = true;
  WakeAt(time);
  return Wait(reason);
}

bool Process::SleepUntilWoken(WaitReason reason) {
  if (killed_) return false;
  waiting_ = true;
  return Wait(reason);
}

bool Process::Wait(WaitReason reason) {
  waiting_for_ = reason;
  fiber_.Suspend();
  return !killed_;
}

void Process::WakeAt(Instant time) {
  if (!waiting_) return;
  scheduler_.At(time, [this, wait = wait_] { OnWake(wait); });
}

void Process::OnWake(std::uint64_t wait) {
  if (!waiting_ || wait != wait_) return;
  if (paused_until_ > scheduler_.now()) {
    if (paused_until_ != Instant::max()) WakeAt(paused_until_);
    return;
  }
  Run();
}

void Process::Run() {
  waiting_ = false;
  ++wait_;
  running_ = true;
  fiber_.Resume();
  running_ = false;
}

void Process::PauseUntil(Instant time) { paused_until_ = std::max(paused_until_, time); }

void Process::Kill() {
  if (killed_) return;
  killed_ = true;
  if (!running_ && !fiber_.ended()) Run();
}

}  // namespace tactus::simulator
