// How long a group of devices waits for what, in one ladder.
//
// Whatever waits for something else must be more patient than it: else the outer limit ends a thing
// whose inner limit would have told why it hangs, and whoever lost the race is blamed.

#pragma once

#include <string>

#include "base/time.h"

namespace tactus::collective {

// Shortest first. Source: design, after pytorch/torchtitan, issue 2899.
struct TimeoutLadder {
  Duration between_groups = Seconds(300);  // a collective between groups
  Duration in_group = Seconds(600);        // a collective within the group
  Duration init = Seconds(900);            // until all members have met
  Duration round = Seconds(1800);          // a round of training, or a quorum
  Duration agent_lease = Seconds(3600);    // until an agent that is silent counts as lost
  Duration job = Seconds(864'000);         // a job without progress

  // The ladder whose collectives within the group have that limit, > 0: every step is the default's
  // multiple of it.
  static TimeoutLadder Above(Duration in_group);

  // The first step that is not positive or not longer than the one below it, for a person; empty
  // when there is none.
  std::string Validate() const;
};

}  // namespace tactus::collective
