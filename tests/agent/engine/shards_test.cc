// How the optimizer's state is cut up among members, and what moves where members change.

#include "agent/engine/shards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using Holdings = std::vector<std::vector<ShardStretch>>;

bool Holds(const std::vector<ShardStretch>& stretches, std::size_t element) {
  return std::ranges::any_of(stretches, [element](const ShardStretch& each) {
    return each.begin <= element && element < each.end;
  });
}

TEST(ShardsTest, StretchesAreAsLongAsTheWeightsAsk) {
  const std::vector<std::uint64_t> weights = {24, 8, 16};

  const std::vector<ShardStretch> own = CutByWeights(480, weights);

  EXPECT_EQ(own, (std::vector<ShardStretch>{{0, 240}, {240, 320}, {320, 480}}));
}

TEST(ShardsTest, WithoutAnyWeightAllAreEqual) {
  const std::vector<std::uint64_t> weights = {0, 0};

  EXPECT_EQ(CutByWeights(64, weights), (std::vector<ShardStretch>{{0, 32}, {32, 64}}));
}

TEST(ShardsTest, WhoHasNoWeightHoldsNothing) {
  const std::vector<ShardStretch> own = CutByWeights(64, std::vector<std::uint64_t>{1, 0, 1, 0});

  EXPECT_EQ(own, (std::vector<ShardStretch>{{0, 32}, {32, 32}, {32, 64}, {64, 64}}));
  const Holdings holdings = HoldingsOf(own, 2);
  EXPECT_EQ(holdings[0], (std::vector<ShardStretch>{{0, 32}, {32, 64}}));
  EXPECT_TRUE(holdings[1].empty());
  EXPECT_EQ(holdings[2], (std::vector<ShardStretch>{{32, 64}, {0, 32}}));
  EXPECT_TRUE(holdings[3].empty());
}

// 1,000 random groups: without gap or overlap, and as the weights say to within a grain.
TEST(ShardsPropertyTest, StretchesCoverTheVectorOnce) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::size_t length = 1 + rng.Below(5000);
    std::vector<std::uint64_t> weights(1 + rng.Below(9));
    std::uint64_t sum = 0;
    for (std::uint64_t& weight : weights) sum += weight = rng.Below(3) == 0 ? 0 : rng.Next() >> 20;

    const std::vector<ShardStretch> own = CutByWeights(length, weights);

    ASSERT_EQ(own.size(), weights.size());
    std::size_t end = 0;
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
      ASSERT_EQ(own[rank].begin, end);
      ASSERT_GE(own[rank].end, end);
      end = own[rank].end;
      if (sum == 0) continue;
      const double share = static_cast<double>(weights[rank]) / static_cast<double>(sum);
      ASSERT_NEAR(static_cast<double>(own[rank].length()), share * static_cast<double>(length),
                  2.0 * kShardGrain);
    }
    ASSERT_EQ(end, length);
  }
}

TEST(ShardsTest, WhatNobodyLacksStays) {
  const Holdings holdings = HoldingsOf(CutByWeights(96, std::vector<std::uint64_t>{1, 1, 1}), 1);

  const ShardMoves plan = PlanMoves(holdings, holdings);

  EXPECT_TRUE(plan.moves.empty());
  EXPECT_TRUE(plan.lost.empty());
}

TEST(ShardsTest, OfThreeTheSecondIsGone) {
  const Holdings held = {{{0, 32}}, {{64, 96}}};
  const Holdings wanted = {{{0, 48}}, {{48, 96}}};

  const ShardMoves plan = PlanMoves(held, wanted);

  EXPECT_TRUE(plan.moves.empty());
  EXPECT_EQ(plan.lost, (std::vector<ShardStretch>{{32, 48}, {48, 64}}));
}

TEST(ShardsTest, OfThreeTheSecondIsGoneAndTheThirdHasItsPart) {
  const Holdings held = {{{0, 32}, {64, 96}}, {{64, 96}, {32, 64}}};
  const Holdings wanted = {{{0, 48}, {48, 96}}, {{48, 96}, {0, 48}}};

  const ShardMoves plan = PlanMoves(held, wanted);

  EXPECT_EQ(plan.moves, (std::vector<ShardMove>{{.stretch = {0, 32}, .source = 0},
                                                {.stretch = {32, 48}, .source = 1},
                                                {.stretch = {48, 64}, .source = 1}}));
  EXPECT_TRUE(plan.lost.empty());
}

// 1,000 random pairs of holdings: after the moves everybody has what it wants, or that is lost.
TEST(ShardsPropertyTest, MovesBringEverybodyWhatItWants) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::size_t length = 16 * (1 + rng.Below(20));
    const std::size_t size = 1 + rng.Below(6);
    const auto random = [&](std::uint32_t copies) {
      std::vector<std::uint64_t> weights(size);
      for (std::uint64_t& weight : weights) weight = rng.Below(5);
      return HoldingsOf(CutByWeights(length, weights), copies);
    };
    Holdings held = random(1 + static_cast<std::uint32_t>(rng.Below(2)));
    if (rng.Below(2) == 0) held[rng.Below(size)].clear();
    const Holdings wanted = random(1 + static_cast<std::uint32_t>(rng.Below(2)));

    const ShardMoves plan = PlanMoves(held, wanted);

    for (std::size_t element = 0; element < length; ++element) {
      const bool lost = Holds(plan.lost, element);
      bool anybody = false;
      for (const std::vector<ShardStretch>& of_member : held) {
        anybody = anybody || Holds(of_member, element);
      }
      ASSERT_EQ(lost, !anybody) << element;
      std::vector<ShardStretch> moved;
      for (const ShardMove& move : plan.moves) {
        if (Holds({move.stretch}, element)) {
          ASSERT_TRUE(Holds(held[move.source], element));
        }
        moved.push_back(move.stretch);
      }
      for (std::size_t rank = 0; rank < size; ++rank) {
        if (!Holds(wanted[rank], element) || lost) continue;
        ASSERT_TRUE(Holds(held[rank], element) || Holds(moved, element)) << element;
      }
    }
  }
}

}  // namespace
}  // namespace tactus::engine
