// A group's first collectives, whose results nobody wants.

#pragma once

#include <span>
#include <string>

#include "agent/collective/transport.h"

namespace tactus::collective {

// Takes every kind of collective on such memory through once: sums of one number and of all, a
// broadcast, and an exchange between neighbours. NCCL takes the memory of its channels, which is
// hundreds of MB, at the first collective that needs them; having it now, no batch that fits turns
// out not to fit later, when its reductions have begun and it can no longer be cut into smaller
// pieces.
//
// zeros  as long on all members, at least 2, in the memory that collectives will use; zeros again
//        afterwards
//
// All members call it in the same place of their collectives. Returns why it failed; empty: done.
std::string Rehearse(Transport& transport, std::span<float> zeros);

}  // namespace tactus::collective
