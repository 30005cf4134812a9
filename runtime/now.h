// The only place of the daemons that reads a clock.

#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tactus::runtime {

// The present on the monotonic clock. Read once an event, in a shell; never below runtime/.
Instant Now();

// Wall-clock time in nanoseconds since 1970: for people, records and file names. It decides
// nothing.
std::int64_t WallNow();
// The same in whole seconds, as certificates have it.
std::int64_t WallSeconds();

// "2026-11-28T07:51:33Z" of seconds since 1970.
std::string UtcText(std::int64_t seconds);

}  // namespace tactus::runtime
