#include "policies/circle.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tactus::policies {

NearPlaces::NearPlaces(Topology graph, std::uint32_t members)
    : members_(members), near_(std::size_t{members} * members) {
  for (std::uint32_t phase = 0; phase < PhasesOf(graph, members); ++phase) {
    const MixingGraph mixing = GraphOf(graph, members, phase);
    for (std::uint32_t place = 0; place < members; ++place) {
      for (const Neighbour& other : mixing[place]) {
        if (other.rank == place) continue;
        near_[std::size_t{place} * members + other.rank] = true;
        near_[std::size_t{other.rank} * members + place] = true;
      }
    }
  }
}

std::vector<std::uint32_t> PlacesOf(const std::vector<std::uint32_t>& circle) {
  std::vector<std::uint32_t> places(circle.size());
  for (std::size_t place = 0; place < circle.size(); ++place) {
    places[circle[place]] = static_cast<std::uint32_t>(place);
  }
  return places;
}

std::optional<std::vector<std::uint32_t>> CircleApart(
    std::vector<std::uint32_t> circle, std::vector<MemberPair> apart, const MemberPair& pair,
    const std::function<bool(std::uint32_t place, std::uint32_t other)>& near) {
  apart.push_back(pair);
  std::erase_if(apart, [&](const MemberPair& one) { return one.high >= circle.size(); });
  std::vector<std::uint32_t> places = PlacesOf(circle);
  for (std::size_t distance = 1; distance < circle.size(); ++distance) {
    for (const std::uint32_t moved : {pair.high, pair.low}) {
      const std::uint32_t other = circle[(places[moved] + distance) % circle.size()];
      std::swap(places[moved], places[other]);
      const bool good = std::ranges::none_of(
          apart, [&](const MemberPair& one) { return near(places[one.low], places[one.high]); });
      if (good) {
        std::swap(circle[places[moved]], circle[places[other]]);
        return circle;
      }
      std::swap(places[moved], places[other]);
    }
  }
  return std::nullopt;
}

}  // namespace tactus::policies
