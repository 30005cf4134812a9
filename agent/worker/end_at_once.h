// The last resort of a worker whose device cannot be stopped.

#pragma once

#include <string>

namespace tactus::worker {

inline constexpr int kExitHung = 70;  // EX_SOFTWARE of sysexits.h

// Says why on standard error and ends the process as it is: no destructor runs, which would free
// memory that a device may still write to, or wait for a call that never returns. The agent sees it
// end, and the group goes on without it. Any thread.
[[noreturn]] void EndAtOnce(const std::string& reason);

}  // namespace tactus::worker
