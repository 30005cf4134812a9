// Members on a circle whose graph is given by their places: who stands where.

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/fields.h"
#include "policies/mixing.h"

namespace tactus::policies {

// Two members, by rank or place; low < high.
struct MemberPair {
  std::uint32_t low = 0;
  std::uint32_t high = 0;

  friend auto operator<=>(const MemberPair&, const MemberPair&) = default;
};
void Fields(auto& archive, Of<MemberPair> auto& pair) {
  archive("low", pair.low);
  archive("high", pair.high);
}
inline bool Sound(const MemberPair& pair) { return pair.low < pair.high; }

// Which places exchange anything in any step; members^2 bits.
class NearPlaces {
 public:
  // `members`: such as the graph takes.
  NearPlaces(Topology graph, std::uint32_t members);

  // Either way round; both below members.
  bool operator()(std::uint32_t place, std::uint32_t other) const {
    return near_[std::size_t{place} * members_ + other];
  }

 private:
  const std::uint32_t members_;
  std::vector<bool> near_;
};

// By rank, where on the circle it is; the circle has each rank once.
std::vector<std::uint32_t> PlacesOf(const std::vector<std::uint32_t>& circle);

// The circle after one member of `pair` changed places with another, such that neither `pair` nor
// any of `apart` is near; of such changes that over the fewest places. Nothing: there is none.
// `near` is asked of places, at most 2 n (p + 1) times for n members and p pairs; pairs of members
// who are not there are left out.
std::optional<std::vector<std::uint32_t>> CircleApart(
    std::vector<std::uint32_t> circle, std::vector<MemberPair> apart, const MemberPair& pair,
    const std::function<bool(std::uint32_t place, std::uint32_t other)>& near);

}  // namespace tactus::policies
