// An agent's goodbye, as agent and coordinator have it.

#pragma once

#include <chrono>

#include "base/time.h"

namespace tactus::protocol {

// The most that an agent may take to leave, and that a coordinator waits for it.
inline constexpr Duration kLeaveMost = std::chrono::hours(7 * 24);

}  // namespace tactus::protocol
