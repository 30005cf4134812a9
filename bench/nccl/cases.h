// What is tried of NCCL, by one member each: a communicator by itself, a group that does not come
// together, two members that share a device, two that work, and one whose peer is killed.
//
// No case waits without a limit, and none throws.

#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "bench/nccl/outcome.h"
#include "bench/nccl/trial.h"

namespace tactus::bench::nccl {

// What a process holds.
struct Held {
  double threads = 0;
  double files = 0;         // descriptors
  double device_bytes = 0;  // of the device's memory, by all processes
};

// A group of one: microseconds of each call. Passes if numbers come out as they went in.
Outcome Alone(const Setting& setting);

// Rank 0 of a group whose other member never comes, so many times: passes if each ends by its
// limit, each is aborted, and threads, files and device memory grow by no more than what NCCL
// itself keeps of each after the first kIncompleteBefore times, in which libraries set up what they
// need.
inline constexpr int kIncompleteTimes = 20;
inline constexpr int kIncompleteBefore = 5;
Outcome Incomplete(const Setting& setting, const std::function<Held()>& held);

// A member of a group on a device that has another member: passes if it is refused, for a reason,
// before the limit.
Outcome Refused(const Setting& setting);

// A member of a group of two that reduces, broadcasts and exchanges: passes if the numbers are
// right. Figures: microseconds of each, and bytes a second of a long all-reduce.
Outcome Pair(const Setting& setting);

// A member whose peer is killed by `kill` after the first collective: passes if the next one ends
// by an error or by the limit, and can be aborted. `kill` does not come back in the peer.
Outcome Bereaved(const Setting& setting, const std::function<void()>& kill);

}  // namespace tactus::bench::nccl
