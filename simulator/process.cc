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
  if (reason == WaitReason::kStarting || reason == WaitReason::kComputing) work_end_ = time;
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
  // Of a wait that something else has ended.
  if (!waiting_ || wait != wait_) return;
  const Instant due = std::max(paused_until_, work_end_);
  if (due <= scheduler_.now()) return Run();
  if (due != Instant::max()) WakeAt(due);
}

void Process::Run() {
  waiting_ = false;
  work_end_ = Instant::min();
  ++wait_;
  running_ = true;
  fiber_.Resume();
  running_ = false;
}

void Process::PauseUntil(Instant time) {
  const Instant begins = std::max(paused_until_, scheduler_.now());
  if (time <= begins) return;
  paused_until_ = time;
  // A wait for others has no end of its own that could shift.
  if (work_end_ == Instant::min()) return;
  work_end_ = time == Instant::max() ? time : work_end_ + (time - begins);
}

void Process::Kill() {
  if (killed_) return;
  killed_ = true;
  // Every wait fails from now on, so the body leaves.
  if (!running_ && !fiber_.ended()) Run();
}

}  // namespace tactus::simulator
