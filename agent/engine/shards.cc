#include "agent/engine/shards.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/check.h"

namespace tactus::engine {
namespace {

bool Covers(const std::vector<ShardStretch>& stretches, const ShardStretch& part) {
  return std::ranges::any_of(stretches, [&](const ShardStretch& each) {
    return each.begin <= part.begin && part.end <= each.end;
  });
}

std::set<std::size_t> BordersOf(const std::vector<std::vector<ShardStretch>>& holdings) {
  std::set<std::size_t> borders;
  for (const std::vector<ShardStretch>& of_member : holdings) {
    for (const ShardStretch& stretch : of_member) {
      borders.insert(stretch.begin);
      borders.insert(stretch.end);
    }
  }
  return borders;
}

}  // namespace

std::vector<ShardStretch> CutByWeights(std::size_t length, std::span<const std::uint64_t> weights) {
  TACTUS_CHECK(!weights.empty());
  const bool any = std::ranges::any_of(weights, [](std::uint64_t weight) { return weight > 0; });
  const auto weight_of = [&](std::size_t rank) {
    return any ? static_cast<double>(weights[rank]) : 1.0;
  };
  double sum = 0;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) sum += weight_of(rank);
  const auto grains = static_cast<double>((length + kShardGrain - 1) / kShardGrain);
  std::vector<ShardStretch> own;
  double before = 0;
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    before += weight_of(rank);
    // The last weight that counts takes what rounding has left.
    const double share = before >= sum ? 1 : before / sum;
    const auto end = static_cast<std::size_t>(std::floor(share * grains + 0.5)) * kShardGrain;
    own.push_back({.begin = begin, .end = std::max(begin, std::min(end, length))});
    begin = own.back().end;
  }
  own.back().end = length;
  return own;
}

std::vector<std::vector<ShardStretch>> HoldingsOf(const std::vector<ShardStretch>& own,
                                                  std::uint32_t copies) {
  std::vector<std::size_t> circle;
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    if (own[rank].length() > 0) circle.push_back(rank);
  }
  std::vector<std::vector<ShardStretch>> holdings(own.size());
  const std::size_t each = std::min<std::size_t>(copies, circle.size());
  for (std::size_t at = 0; at < circle.size(); ++at) {
    for (std::size_t back = 0; back < each; ++back) {
      const std::size_t whose = circle[(at + circle.size() - back) % circle.size()];
      holdings[circle[at]].push_back(own[whose]);
    }
  }
  return holdings;
}

ShardMoves PlanMoves(const std::vector<std::vector<ShardStretch>>& held,
                     const std::vector<std::vector<ShardStretch>>& wanted) {
  TACTUS_CHECK(held.size() == wanted.size());
  std::set<std::size_t> borders = BordersOf(held);
  borders.merge(BordersOf(wanted));
  ShardMoves plan;
  std::optional<std::size_t> begin;
  for (const std::size_t border : borders) {
    const ShardStretch part{.begin = begin.value_or(border), .end = border};
    begin = border;
    if (part.length() == 0) continue;
    bool lacks = false;
    std::optional<std::size_t> source;
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      const bool has = Covers(held[rank], part);
      if (has && !source) source = rank;
      lacks = lacks || (!has && Covers(wanted[rank], part));
    }
    if (!lacks) continue;
    if (source) {
      plan.moves.push_back({.stretch = part, .source = *source});
    } else {
      plan.lost.push_back(part);
    }
  }
  return plan;
}

}  // namespace tactus::engine
