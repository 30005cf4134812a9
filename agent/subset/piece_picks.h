// How many samples of a class are picked where: in the pieces that its members cut it into.

#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace tactus::subset {

struct PiecePicks {
  // By member, of each of its pieces.
  std::vector<std::vector<std::uint64_t>> of_pieces{};
  std::uint64_t picked = 0;  // in all of them
  bool again = false;        // one member picks the quota among them, and all samples count anew

  std::uint64_t by(std::size_t member) const {
    return std::accumulate(of_pieces[member].begin(), of_pieces[member].end(), std::uint64_t{0});
  }
};

// Piece p of k has the samples p, p + k, ... of a member's.
std::uint64_t SizeOfPiece(std::uint64_t size, std::uint64_t piece, std::uint64_t pieces);

// Each piece picks as many as the class is to have, and one member among those. Where that would be
// too many for one, each piece picks its share, and that is it. Where there are more pieces than
// are to be picked, each picks so few that one member can pick among them; and of more pieces than
// that, some pick, evenly one of so many, as samples lie in pieces at random.
//
// sizes      [members]  samples of the class that each has
// quota      >= 1 where there are any, at most all of them together
// piece_max  >= 1: who picks chooses among no more, or all of what there is
//
// Source: GreeDi, with the last two differing: its machines pick the quota each.
PiecePicks PlanPicks(std::span<const std::uint64_t> sizes, std::uint64_t quota,
                     std::size_t piece_max);

}  // namespace tactus::subset
