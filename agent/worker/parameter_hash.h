// Hashes by which members compare what they hold.

#pragma once

#include <span>

#include "agent/engine/comparison.h"

namespace tactus::worker {

// Of one member's parameters, in the host's memory.
engine::HashedParameters HashOf(std::span<const float> parameters);

// Of what several hold together, in their order; finite where all are.
engine::HashedParameters HashOfAll(std::span<const engine::HashedParameters> parts);

}  // namespace tactus::worker
