#include "agent/subset/piece_picks.h"

#include <algorithm>

#include "agent/subset/quotas.h"

namespace tactus::subset {
namespace {

std::uint64_t PiecesOf(std::uint64_t size, std::size_t piece_max) {
  return (size + piece_max - 1) / piece_max;
}

// One of each, of so many of these groups as evenly as may be.
std::vector<std::uint64_t> OneOfSome(std::size_t groups, std::uint64_t some) {
  std::vector<std::uint64_t> ones(groups);
  for (std::uint64_t i = 0; i < groups; ++i) {
    ones[i] = (i + 1) * some / groups - i * some / groups;
  }
  return ones;
}

std::vector<std::uint64_t> QuotasOf(const std::vector<std::uint64_t>& pieces, std::uint64_t quota,
                                    std::size_t piece_max) {
  std::vector<std::uint64_t> most;
  std::uint64_t all = 0;
  for (const std::uint64_t size : pieces) {
    most.push_back(std::min(quota, size));
    all += most.back();
  }
  if (all <= piece_max) return most;
  if (pieces.size() <= quota) return Quotas(pieces, quota);
  if (pieces.size() > piece_max) {
    const std::uint64_t some = std::max<std::uint64_t>(quota, piece_max);
    return OneOfSome(pieces.size(), std::min<std::uint64_t>(some, pieces.size()));
  }
  for (std::uint64_t& one : most) one = std::min<std::uint64_t>(one, piece_max / pieces.size());
  return most;
}

}  // namespace

std::uint64_t SizeOfPiece(std::uint64_t size, std::uint64_t piece, std::uint64_t pieces) {
  return (size - piece + pieces - 1) / pieces;
}

PiecePicks PlanPicks(std::span<const std::uint64_t> sizes, std::uint64_t quota,
                     std::size_t piece_max) {
  std::vector<std::uint64_t> pieces;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t count = PiecesOf(size, piece_max);
    for (std::uint64_t i = 0; i < count; ++i) pieces.push_back(SizeOfPiece(size, i, count));
  }
  const std::vector<std::uint64_t> quotas = QuotasOf(pieces, quota, piece_max);
  PiecePicks picks{.picked = std::accumulate(quotas.begin(), quotas.end(), std::uint64_t{0})};
  const bool some_pick_none = std::ranges::find(quotas, std::uint64_t{0}) != quotas.end();
  picks.again = picks.picked > quota || some_pick_none;
  auto next = quotas.begin();
  for (const std::uint64_t size : sizes) {
    const auto count = static_cast<std::ptrdiff_t>(PiecesOf(size, piece_max));
    picks.of_pieces.emplace_back(next, next + count);
    next += count;
  }
  return picks;
}

}  // namespace tactus::subset
