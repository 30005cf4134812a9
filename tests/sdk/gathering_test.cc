// What members tell one another while training stands still.

#include "sdk/gathering.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Instant Now() { return Instant(std::chrono::steady_clock::now().time_since_epoch()); }

// What a member was told in its own turns, and in how many turns of all.
struct Told {
  std::vector<Gathered> own{};
  int turns = 0;
};

// Each member makes its offers one after the other.
std::vector<Told> StandTogether(const std::vector<std::vector<Offer>>& offers) {
  auto group = collective::MakeInProcessGroup(static_cast<int>(offers.size()), Now);
  std::vector<Told> told(offers.size());
  std::vector<std::thread> members;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    members.emplace_back([&, rank] {
      std::size_t made = 0;
      while (true) {
        Gathered gathered;
        const Offer own = made < offers[rank].size() ? offers[rank][made] : Offer{};
        const absl::StatusOr<Turn> turn = TakeTurn(*group[rank], own, gathered);
        ASSERT_TRUE(turn.ok()) << turn.status();
        if (*turn == Turn::kOver) return;
        ++told[rank].turns;
        if (*turn != Turn::kOwn) continue;
        told[rank].own.push_back(gathered);
        ++made;
      }
    });
  }
  for (std::thread& member : members) member.join();
  return told;
}

TEST(GatheringTest, WhatAllOfferAllAreToldToTheLastBit) {
  const double odd = std::nextafter(1.0 / 3, 1);
  const auto told = StandTogether({{{.key = 7, .values = {odd, -1e300}}},
                                   {{.key = 7, .values = {5e-324, 2}}},
                                   {{.key = 7, .values = {-0.0, 3}}}});

  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(told[rank].own.size(), 1u);
    EXPECT_THAT(told[rank].own[0].values, ElementsAre(odd, -1e300, 5e-324, 2, -0.0, 3));
    EXPECT_EQ(told[rank].own[0].members, 3u);
    EXPECT_EQ(told[rank].own[0].place, rank);
    EXPECT_EQ(told[rank].turns, 1);
  }
}

TEST(GatheringTest, WhoHasNothingToTellWaitsForTheOthers) {
  const auto told = StandTogether({{}, {{.key = 1, .values = {4}}}, {}});

  EXPECT_THAT(told[0].own, IsEmpty());
  EXPECT_EQ(told[0].turns, 1);
  ASSERT_EQ(told[1].own.size(), 1u);
  EXPECT_THAT(told[1].own[0].values, ElementsAre(4));
  EXPECT_EQ(told[1].own[0].place, 0u);
}

// As where rank 1 alone evaluates, and then all take a mean.
TEST(GatheringTest, UnlikeOffersHaveTheirTurnsByTheirKeys) {
  const Offer mean{.key = 2, .values = {1}};
  const auto told = StandTogether({{mean}, {{.key = 1, .values = {8}}, mean}, {mean}});

  ASSERT_EQ(told[1].own.size(), 2u);
  EXPECT_THAT(told[1].own[0].values, ElementsAre(8));
  for (const Told& each : told) EXPECT_THAT(each.own.back().values, ElementsAre(1, 1, 1));
  EXPECT_EQ(told[2].turns, 2);
}

TEST(GatheringTest, AsManyValuesAreOneOffer) {
  const auto told = StandTogether({{{.key = 1, .values = {8}}}, {{.key = 1, .values = {8, 9}}}});

  EXPECT_THAT(told[0].own[0].values, ElementsAre(8));
  EXPECT_THAT(told[1].own[0].values, ElementsAre(8, 9));
}

TEST(GatheringTest, ALostGroupIsSaid) {
  auto group = collective::MakeInProcessGroup(2, Now);
  group[1]->Abort("rank 1 is gone");
  Gathered gathered;
  const absl::StatusOr<Turn> turn = TakeTurn(*group[0], {.key = 1, .values = {1}}, gathered);

  EXPECT_EQ(turn.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tactus::sdk
