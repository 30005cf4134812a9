#include "policies/circle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tactus::policies {
namespace {

std::vector<std::uint32_t> InOrder(std::uint32_t members) {
  std::vector<std::uint32_t> circle(members);
  std::iota(circle.begin(), circle.end(), 0u);
  return circle;
}

TEST(NearPlacesTest, PlacesAreNearWhereOneTakesTheOtherInInAnyStep) {
  const NearPlaces ring(Topology::kRing, 5);
  EXPECT_TRUE(ring(0, 1) && ring(1, 0) && ring(0, 4) && ring(4, 0));
  EXPECT_FALSE(ring(0, 2) || ring(0, 3) || ring(0, 0));
  const NearPlaces one_peer(Topology::kOnePeerExponential, 16);  // one direction, four phases
  EXPECT_TRUE(one_peer(0, 1) && one_peer(1, 0) && one_peer(0, 8) && one_peer(4, 0));
  EXPECT_FALSE(one_peer(0, 3));
}

TEST(CircleTest, TheNearestChangeOfPlacesPutsAPairApart) {
  const NearPlaces near(Topology::kRing, 6);

  EXPECT_EQ(CircleApart(InOrder(6), {}, {2, 3}, near),
            (std::vector<std::uint32_t>{0, 1, 2, 4, 3, 5}));
  // By that 4 would come to stand beside 2.
  EXPECT_EQ(CircleApart(InOrder(6), {{2, 4}, {3, 5}}, {2, 3}, near),
            (std::vector<std::uint32_t>{0, 1, 2, 5, 4, 3}));
}

TEST(CircleTest, APairOfMembersWhoAreNotThereIsLeftOut) {
  const NearPlaces near(Topology::kRing, 6);

  EXPECT_EQ(CircleApart(InOrder(6), {{2, 7}}, {2, 3}, near),
            CircleApart(InOrder(6), {}, {2, 3}, near));
}

// Against all changes of two places, by what is promised of them.
TEST(CircleTest, WhatIsFoundIsAPermutationWithAllPairsApartAndNothingIsMissed) {
  for (const Topology graph : {Topology::kRing, Topology::kExponential}) {
    for (std::uint32_t members = 3; members <= 12; ++members) {
      const NearPlaces near(graph, members);
      const std::vector<MemberPair> apart = {{0, 2}};
      for (std::uint32_t low = 0; low + 1 < members; ++low) {
        const MemberPair pair{low, low + 1};
        const auto all_apart = [&](const std::vector<std::uint32_t>& circle) {
          const std::vector<std::uint32_t> places = PlacesOf(circle);
          return !near(places[pair.low], places[pair.high]) && !near(places[0], places[2]);
        };
        bool there_is_one = false;
        for (const std::uint32_t moved : {pair.low, pair.high}) {
          for (std::uint32_t other = 0; other < members; ++other) {
            std::vector<std::uint32_t> circle = InOrder(members);
            std::swap(circle[moved], circle[other]);
            there_is_one |= other != moved && all_apart(circle);
          }
        }

        const auto found = CircleApart(InOrder(members), apart, pair, near);

        ASSERT_EQ(found.has_value(), there_is_one) << members << " " << low;
        if (!found) continue;
        EXPECT_TRUE(all_apart(*found)) << members << " " << low;
        EXPECT_TRUE(std::ranges::is_permutation(*found, InOrder(members)));
      }
    }
  }
}

// No change helps, which shows with the last pair only.
TEST(CircleTest, TheWorkGrowsWithTheSquareOfTheMembers) {
  constexpr std::uint32_t kMembers = 128;
  std::vector<MemberPair> apart;  // as many as two moves a member make
  for (std::uint32_t rank = 0; rank + 1 < kMembers; ++rank) apart.push_back({rank, rank + 1});
  std::uint64_t looks = 0;

  const auto found = CircleApart(InOrder(kMembers), apart, {5, 77},
                                 [&](auto, auto) { return ++looks % kMembers == 0; });

  EXPECT_FALSE(found.has_value());
  EXPECT_EQ(looks, 2 * (kMembers - 1) * kMembers);
}

TEST(CircleTest, WhereAllAreNeighboursThereIsNoChange) {
  const NearPlaces complete(Topology::kComplete, 128);

  EXPECT_FALSE(CircleApart(InOrder(128), {}, {5, 77}, complete).has_value());
}

}  // namespace
}  // namespace tactus::policies
