// A process of the simulated world: code that computes, waits, is paused and is killed.

#pragma once

#include <cstdint>
#include <functional>

#include "base/time.h"
#include "fibers/fiber.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {

// What a process waits for, for the checkers.
enum class WaitReason { kStarting, kMessage, kComputing, kCollective };

// Runs a body that may sleep in virtual time. A killed process runs on to its end without sleeping:
// every wait returns false, and the body is expected to leave. One thread.
class Process {
 public:
  // `body` begins at once, in an event of its own. Outlived by the scheduler, and outlives every
  // event that it scheduled: owners keep ended processes.
  Process(Scheduler& scheduler, std::function<void()> body);

  // ---- From within the body; false: it was killed.

  bool SleepUntil(Instant time, WaitReason reason);
  // Until Wake or WakeAt.
  bool SleepUntilWoken(WaitReason reason);

  // ---- From outside

  // Ends the present wait, if any, now or at `time`; of several times the soonest counts.
  void WakeAt(Instant time);
  void Wake() { WakeAt(scheduler_.now()); }

  // Stands still until then. Its own work (kStarting, kComputing) takes so much longer; what comes
  // from others meanwhile wakes it then. Only extends.
  void PauseUntil(Instant time);
  Instant paused_until() const { return paused_until_; }

  // It ends now: its body runs to its end within this call, unless it is the caller.
  void Kill();

  bool killed() const { return killed_; }
  bool ended() const { return fiber_.ended(); }
  WaitReason waiting_for() const { return waiting_for_; }

 private:
  bool Wait(WaitReason reason);
  void OnWake(std::uint64_t wait);
  void Run();

  Scheduler& scheduler_;
  fibers::Fiber fiber_;
  bool running_ = false;
  bool killed_ = false;
  std::uint64_t wait_ = 0;  // number of the present or last wait
  bool waiting_ = false;
  WaitReason waiting_for_ = WaitReason::kStarting;
  Instant paused_until_{};
  Instant work_end_ = Instant::min();  // of the present wait for its own work; min: another wait
};

}  // namespace tactus::simulator
