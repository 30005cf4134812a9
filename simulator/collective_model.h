// What a collective costs: the messages of its algorithm, sent over the links.

#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/time.h"
#include "simulator/cluster_model.h"
#include "simulator/network.h"

namespace tactus::simulator {

// Groups of more members than this have the messages of kMesh and kRing, which grow with the square
// of the members, sent as the loads that they sum up to (ExchangeByLoads, RingByLoads).
inline constexpr std::size_t kMessagesMembersMax = 64;

// The members of a group and where they are.
struct Places {
  std::vector<std::size_t> hosts{};  // by rank: index of the member's host
};

// One collective of a group. ready, finished [members]: when each member has started it and when it
// is done for it, at or after its own `ready`; they may be the same memory. A member is done when
// it has received what it needs: what it still has to send leaves without it. That is kNever when a
// partition for ever keeps it from it. Sums cost nothing.
struct CollectiveCall {
  double bytes = 0;  // of the buffer, >= 0; 4 an element
  std::span<const Instant> ready{};
  std::span<Instant> finished{};
};

// All-reduce by the given algorithm. One member alone sends nothing.
//
//   kMesh              short buffers whole to everybody; long ones in n chunks, gathered at their
//                      owners, then sent back to all (as agent/collective/mesh_collectives.h)
//   kRing              2 (n - 1) steps of bytes / n to the next rank
//   kRecursiveHalving  halving then doubling over distance 1, 2, 4 ...; a rank beyond the largest
//                      power of two first adds to, and last receives from, one within it
//   kTree              binomial tree to rank 0 and back, whole buffers
void RunAllReduce(Algorithm algorithm, const Places& places, const CollectiveCall& call,
                  Network& network);

// The root's buffer to all: kMesh in chunks over all members, or whole when short; others by a
// binomial tree. The root has it from the beginning and is done at its `ready`.
void RunBroadcast(Algorithm algorithm, const Places& places, int root, const CollectiveCall& call,
                  Network& network);

// By rank of the sender and of the receiver. [bytes]
using Messages = std::vector<std::vector<double>>;

// Every member sends every other what there is for it, those of a sender side by side, and is done
// when it has what is sent to it; nothing is not sent.
void RunMessages(const Places& places, const Messages& messages, const CollectiveCall& call,
                 Network& network);

// Every member sends the whole buffer to each of its neighbours and is done when it has what is
// sent to it. neighbours [members]: ranks, without the member itself.
void RunNeighbourExchange(const Places& places,
                          const std::vector<std::vector<std::size_t>>& neighbours,
                          const CollectiveCall& call, Network& network);

// Every member sends every other a message of call.bytes and is done when it has all of theirs.
void RunAllToAll(const Places& places, const CollectiveCall& call, Network& network);

// Two members send to each other at once. times: in, when each of them starts; out, when each has
// what the other sent, kNever as above. A message of no bytes takes its latency all the same.
struct PairCall {
  std::array<std::size_t, 2> hosts{};
  std::array<double, 2> bytes{};  // that each sends, >= 0
  std::array<Instant, 2> times{};
};
void RunPairExchange(PairCall& call, Network& network);

}  // namespace tactus::simulator
