#include "agent/subset/weights.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

std::vector<double> Held(std::vector<double> weights, double most) {
  HoldBelow(weights, most);
  return weights;
}

TEST(WeightsTest, WhatIsAboveTheBoundGoesToTheOthersInProportion) {
  EXPECT_THAT(Held({1.5, 1, 0.5}, 20), ElementsAre(1.5, 1, 0.5));
  EXPECT_THAT(Held({0.5, 4, 0.25, 0.25}, 3), ElementsAre(1, 3, 0.5, 0.5));
  // The second is above it only by what it gets of the first.
  EXPECT_THAT(Held({10, 5, 1, 2}, 6), ElementsAre(6, 6, 2, 4));
}

TEST(WeightsTest, WhereTheMeanIsAboveTheBoundAllBecomeTheMean) {
  EXPECT_THAT(Held({5, 1}, 2), ElementsAre(3, 3));
  EXPECT_THAT(Held({5, 1}, 3), ElementsAre(3, 3));
  EXPECT_THAT(Held({}, 3), ElementsAre());
}

// The slow twin gives each excess away again and again, until there is none.
std::vector<double> HeldSlowly(std::vector<double> weights, double most) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  most = std::max(most, sum / static_cast<double>(weights.size()));
  for (int turn = 0; turn < 1000; ++turn) {
    double excess = 0;
    double below = 0;
    for (double& weight : weights) {
      excess += std::max(0.0, weight - most);
      weight = std::min(weight, most);
      if (weight < most) below += weight;
    }
    if (excess == 0 || below == 0) break;
    for (double& weight : weights) {
      if (weight < most) weight *= 1 + excess / below;
    }
  }
  return weights;
}

TEST(WeightsTest, IsWhatGivingAwayAgainAndAgainComesTo) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<double> weights(1 + rng.Below(40));
    for (double& weight : weights) weight = static_cast<double>(1 + rng.Below(4) * rng.Below(30));
    const double most = 1 + 40 * rng.Uniform();

    const std::vector<double> held = Held(weights, most);

    const std::vector<double> slowly = HeldSlowly(weights, most);
    for (std::size_t i = 0; i < held.size(); ++i) ASSERT_NEAR(held[i], slowly[i], 1e-6 * most);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    ASSERT_NEAR(std::accumulate(held.begin(), held.end(), 0.0), sum, 1e-12 * sum);
  }
}

TEST(WeightsTest, UnequalOnesAreAsEvenAsFewer) {
  EXPECT_EQ(EffectiveCount({}), 0);
  EXPECT_EQ(EffectiveCount(std::vector<float>{2, 2, 2, 2}), 4);
  EXPECT_THAT(EffectiveCount(std::vector<float>{3, 1, 1, 1}), DoubleEq(3));
}

}  // namespace
}  // namespace tactus::subset
