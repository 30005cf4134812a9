// In which order the collectives of several groups reach one device.
//
// Groups have threads that make their calls. What two of them launch at the same time would come to
// one device in one order, and to another in the other: where both share a queue of the hardware,
// each device then waits for what stands second in the other's. NCCL wants one order on all.

#pragma once

#include <chrono>
#include <deque>
#include <set>

#include "threads/mutex.h"

namespace tactus::collective {

// The order of the starts, of all groups that share it: where every member starts the same ones in
// the same order, devices have them so, too. Any thread.
class LaunchOrder {
 public:
  // A collective of the group is started; who has left is not noted.
  void Enter(const void* group);
  // Whether the group's next collective is the next of all; waits for that, but for no longer.
  bool AwaitTurn(const void* group, std::chrono::milliseconds limit);
  // It is launched. Requires: it was its turn.
  void Launched(const void* group);
  // Of this group nothing more is launched, and nobody waits for it.
  void Leave(const void* group);

 private:
  threads::Mutex mutex_;
  threads::Condition changed_;
  std::deque<const void*> waiting_ ABSL_GUARDED_BY(mutex_);  // groups, by start
  std::set<const void*> gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::collective
