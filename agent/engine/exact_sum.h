// Sums of float64 over members that all of them get alike: of what decides something, as a norm
// that is clipped by.

#pragma once

#include <span>

#include "agent/collective/transport.h"

namespace tactus::engine {

// sums <- the sums over the members of the group of each one's, as many on all, in float64 and rank
// order: the same bits on all, where a collective's own sums are float32. What is not a number or
// infinite on one is so on all. By all members of the group, in one collective. Waits; returns how
// it ended, and the sums mean nothing where it failed.
collective::Completion SumExactly(collective::Transport& group, std::span<double> sums);

}  // namespace tactus::engine
