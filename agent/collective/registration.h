// Memory that all members of a group register with their transports, or none.

#pragma once

#include <span>

#include "agent/collective/transport.h"

namespace tactus::collective {

// Registers `memory` where every member does; all call this at the same place of their collectives.
// fit: whether this member's is of a kind that may be registered. Waits for the others. Returns
// whether it is registered, alike on all members but in a group that is being lost: then it is not.
bool RegisterTogether(Transport& transport, std::span<float> memory, bool fit);

}  // namespace tactus::collective
