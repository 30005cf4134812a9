#include "agent/engine/combine/tiers.h"

#include <algorithm>
#include <map>

namespace tactus::engine {

int Tiers::AmongLeaders(int leader) const {
  return static_cast<int>(std::ranges::lower_bound(leaders, leader) - leaders.begin());
}

Tiers TiersOf(std::span<const std::uint32_t> nodes) {
  Tiers tiers;
  std::map<std::uint32_t, int> lowest;
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const int rank = static_cast<int>(index);
    const auto [node, fresh] = lowest.try_emplace(nodes[index], rank);
    tiers.leader_of.push_back(node->second);
    if (fresh) tiers.leaders.push_back(rank);
  }
  return tiers;
}

}  // namespace tactus::engine
