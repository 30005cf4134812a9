// Which members of a group lie on one node, and who speaks for each node.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tactus::engine {

struct Tiers {
  std::vector<int> leader_of{};  // by rank: the lowest rank of its node
  std::vector<int> leaders{};    // in order

  // Whether there are several nodes, of which some have several members.
  bool any() const { return leaders.size() > 1 && leaders.size() < leader_of.size(); }
  bool Leads(int rank) const { return leader_of[static_cast<std::size_t>(rank)] == rank; }
  bool Follows(int member, int leader) const {
    return member != leader && leader_of[static_cast<std::size_t>(member)] == leader;
  }
  // A leader's rank among leaders.
  int AmongLeaders(int leader) const;
};

// nodes: of each rank, by any numbers.
Tiers TiersOf(std::span<const std::uint32_t> nodes);

}  // namespace tactus::engine
