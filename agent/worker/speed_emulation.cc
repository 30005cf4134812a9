#include "agent/worker/speed_emulation.h"

#include <chrono>
#include <thread>

#include "agent/worker/clock.h"

namespace tactus::worker {

void SpeedEmulation::Begin() {
  if (speed_ <= 0) return;
  started_ = Now();
  cpu_started_ = ThreadCpuTime();
}

Instant SpeedEmulation::AwaitEnd() const {
  if (speed_ <= 0) return Now();
  const double cpu_seconds = ToSeconds(ThreadCpuTime() - cpu_started_);
  const Instant end = started_ + Seconds(cpu_seconds * cpu_factor_ / speed_);
  std::this_thread::sleep_for(end - Now());
  return end;
}

}  // namespace tactus::worker
