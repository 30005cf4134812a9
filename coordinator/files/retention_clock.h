// What time it is for what is removed because it is old.

#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "coordinator/job/records.h"

namespace tactus::service {

// A clock that is set wrong must not remove a history. This one follows the time of day where that
// goes on as the monotonic clock does, and where it jumps ahead, follows it at twice the monotonic
// clock's speed; across a start it believes in at most kAwayMax of absence. So a jump of years
// removes what is a week older at most, and whoever sets the clock right in time loses nothing. It
// is never ahead of the time of day. Pure; one thread.
class RetentionClock {
 public:
  static constexpr Duration kAwayMax = std::chrono::hours(24 * 7);

  // kept: what Now said last, in this process or a former one; 0: nothing.
  RetentionClock(job::WallTime kept, Instant start)
      : base_(kept == 0 ? 0 : kept + kAwayMax.count()), start_(start) {}

  // wall: the time of day.
  job::WallTime Now(job::WallTime wall, Instant now) {
    if (base_ == 0) base_ = wall;
    const job::WallTime most = base_ + 2 * (now - start_).count();
    // Where the time of day is behind, the allowance does not grow.
    if (wall < most) {
      base_ = wall;
      start_ = now;
    }
    return std::min(wall, most);
  }

 private:
  job::WallTime base_;  // at start_; 0: not known yet
  Instant start_;
};

}  // namespace tactus::service
