// The steps of a ring collective: each member sends to the next as soon as it has received.

#pragma once

#include <cstddef>
#include <span>

#include "base/time.h"
#include "simulator/network.h"

namespace tactus::simulator {

// `steps` times, every rank sends a message to the next rank, the last to the first; each but its
// first when it has received the one of the step before.
struct RingSteps {
  std::span<const std::size_t> hosts{};  // [members], by rank; at least 2
  double bytes = 0;                      // of each message
  std::size_t steps = 0;
};

// Runs the steps message by message, steps * members of them.
//
// times [members]: in, when each member begins; out, when it has received its last message, kNever
// for one that does not.
void RingByMessages(const RingSteps& ring, std::span<Instant> times, Network& network);

// The same with one queue between each two neighbours in place of two or three ways: the way that
// takes longest for what a step loads on it. Stops as soon as a step moves all times by the same,
// as all further ones would too: at once on equal links, after about `members` steps where one link
// holds up all others, and never where latencies do.
//
// Equals RingByMessages where every way carries one message a step and no burst is saved up. Where
// ways are shared, a message is taken to pass as if alone until its way carries more than it can;
// then all of a step are through together, so a member may be done sooner or later by a few steps.
// Of bursts only that of the slowest way counts. See the tests for by how much that is off.
// Requires: no message is held back by Network::Block, and no time is kNever.
void RingByLoads(const RingSteps& ring, std::span<Instant> times, Network& network);

}  // namespace tactus::simulator
