// Mixing over a graph: who exchanges parameters with whom, and whether momentum is stable by it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/fields.h"

namespace tactus::policies {

// Who mixes with whom. Members are on a circle; 2^t stands for the powers of two below their
// number n, of which there are l = ceil(log2 n).
enum class Topology {
  kRing,                 // the next on both sides, a quarter each
  kExponential,          // those 2^t away on both sides, all alike
  kDirectedExponential,  // from those 2^t before: 1 / (l + 1) each
  kOnePeerExponential,   // from the one 2^t before, a half; t goes on with each step
  kOnePeerHypercube,  // with the one whose number differs in bit t, likewise; n is a power of two
  kComplete,          // everybody: 1 / n each
};

// In the order of the enumerators.
inline constexpr auto kTopologyNames =
    std::to_array<std::string_view>({"ring", "exponential", "directed_exponential",
                                     "one_peer_exponential", "one_peer_hypercube", "complete"});
constexpr std::string_view NameOf(Topology topology) {
  return kTopologyNames[static_cast<std::size_t>(topology)];
}

// A member whose vector another takes in, and its weight there.
struct Neighbour {
  std::uint32_t rank = 0;
  double weight = 0;  // > 0

  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

// For each member those it takes in, itself first, then by rank. Weights of a member sum to 1, and
// so do those that a member has with all others: the mean of all stays.
using MixingGraph = std::vector<std::vector<Neighbour>>;

// Graphs that follow one another, from step to step; the step after the last is as the first.
std::uint32_t PhasesOf(Topology topology, std::uint32_t members);
// members >= 1; such as the topology takes.
MixingGraph GraphOf(Topology topology, std::uint32_t members, std::uint64_t step);
bool Takes(Topology topology, std::uint32_t members);

// The graph where the member at place i is circle[i], which has each rank once; empty: i itself.
MixingGraph Placed(const MixingGraph& graph, std::span<const std::uint32_t> circle);
// By rank: those who take the member in, itself left out, in their order.
std::vector<std::vector<std::uint32_t>> ReceiversOf(const MixingGraph& graph);

// By how much a step multiplies what members differ by, in the long run, under DecentLaM with this
// momentum in [0, 1), on f_i = (h / 2) (x - c_i)^2 at the rate gamma: below 1 it is stable.
//
// Mixing is diagonal in modes that all phases share, so it is the largest over these of the
// spectral radius of the product of
//
//   [ 1 - q   -beta ]
//   [   q      beta ],   q = 1 - lambda (1 - gamma h)
//
// over the phases, to the power of one over their number. 0 of a single member.
//
// Source: algebra, from the recursion of [decentlam].
double GrowthOf(Topology topology, std::uint32_t members, double momentum, double gamma_h);

// The largest of gamma h of 0.001, 0.01, 0.1 and 0.5.
double WorstGrowth(Topology topology, std::uint32_t members, double momentum);
// Whether that is below 1. What is symmetric and stays is, for every momentum; what is not, for
// small ones alone.
bool IsStable(Topology topology, std::uint32_t members, double momentum);

// The largest momentum, in hundredths, with which it is for groups of these sizes that the topology
// takes.
double LargestMomentum(Topology topology, std::uint32_t members_min, std::uint32_t members_max);

}  // namespace tactus::policies

namespace tactus {

template <>
inline constexpr int kEnumMax<policies::Topology> =
    static_cast<int>(policies::kTopologyNames.size()) - 1;

}  // namespace tactus
