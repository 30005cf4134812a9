// Pretending to be a slower device, for demonstrations without unequal hardware.

#pragma once

#include "base/time.h"

namespace tactus::worker {

// Lengthens each micro-batch so that it lasts its thread's CPU time times cpu_factor / speed.
//
// CPU time and not wall time is the base, so that workers sharing cores do not distort one another:
// as long as the sum of speeds / cpu_factor stays below the number of cores, each gets the CPU time
// it needs within its lengthened duration. One thread.
class SpeedEmulation {
 public:
  // speed 0: nothing is lengthened; otherwise > 0, 1 being the reference. cpu_factor >= 1.
  SpeedEmulation(double speed, double cpu_factor) : speed_(speed), cpu_factor_(cpu_factor) {}

  // A micro-batch begins.
  void Begin();

  // It is computed; waits until its emulated duration is over and returns when that was. On a host
  // with more to do than it has cores that may lie in the past: the overrun is the host's, not the
  // pretended device's.
  Instant AwaitEnd() const;

 private:
  const double speed_;
  const double cpu_factor_;
  Instant started_;
  Duration cpu_started_{};
};

}  // namespace tactus::worker
