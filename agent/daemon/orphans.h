// What workers leave behind outside their groups.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>

namespace tactus::agent {

// Lets this process have the children of its children when those end, instead of the system's
// first process. Called by main.
void AdoptOrphans();

// Ends such children, and collects those that have ended, without waiting for any. `own`: the
// processes that this one started and will collect itself; what is in a session of theirs is left
// alone. Returns how many are still to be collected. Does nothing without AdoptOrphans.
//
// With a cgroup nothing is left to do here but collecting: it ends all that came of a worker.
std::size_t EndOrphans(const std::set<pid_t>& own);

}  // namespace tactus::agent
