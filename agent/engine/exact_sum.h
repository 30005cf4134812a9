// A sum of one float64 a member that all of them get alike: of what decides something, as a norm
// that is clipped by.

#pragma once

#include "agent/collective/transport.h"

namespace tactus::engine {

// sum <- sum over the members of the group of `own`, in float64 and rank order: the same bits on
// all, where a collective's own sums are float32. What is not a number or infinite on one is so on
// all. By all members of the group. Waits; returns how it ended, and `sum` means nothing where it
// failed.
collective::Completion SumExactly(collective::Transport& group, double own, double& sum);

}  // namespace tactus::engine
