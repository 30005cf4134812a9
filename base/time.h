// Time as an argument: a clock that cannot be asked what time it is.
//
// Every layer below runtime/ receives instants and never reads a clock, so the simulator can run
// the same code in virtual time. Only runtime::Now() and the simulator make an Instant.

#pragma once

#include <chrono>
#include <cstdint>

namespace tactus {

// A monotonic clock without now(); std::chrono accepts it. Instants are local to one process and
// are never sent to another: durations are.
struct Monotonic {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Monotonic>;
  static constexpr bool is_steady = true;
};

using Instant = Monotonic::time_point;
using Duration = Monotonic::duration;

// A duration from seconds, rounded towards zero to a nanosecond. |seconds| < 9.2e9 (292 years).
constexpr Duration Seconds(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

constexpr double ToSeconds(Duration duration) {
  return static_cast<double>(duration.count()) * 1e-9;
}

}  // namespace tactus
