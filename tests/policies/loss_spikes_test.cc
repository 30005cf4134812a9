// Losses that rise as no noise of them explains.

#include "policies/loss_spikes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tactus::policies {
namespace {

class LossSpikesTest : public testing::Test {
 protected:
  // Rounds whose losses are spread around `loss`, by a relative `noise`; whether one of them made a
  // spike whole.
  bool Train(int rounds, double loss, double noise = 0.1) {
    std::normal_distribution<double> spread(0, noise);
    bool any = false;
    for (int i = 0; i < rounds; ++i) {
      const double value = loss * std::exp(spread(random_));
      if (const auto spike = spikes_.Add(round_++, value, plan_)) {
        last_ = *spike;
        any = true;
      }
    }
    return any;
  }

  LossSpikes spikes_;
  Plan plan_{.version = 1, .batch_sizes = {8, 8}};
  LossSpike last_{};
  std::uint64_t round_ = 0;
  std::mt19937_64 random_{7};
};

TEST_F(LossSpikesTest, ALossThatStaysHighIsFoundWithinABlockOfWhenItIsCertain) {
  EXPECT_FALSE(Train(400, 2.0));
  const std::uint64_t began = round_;
  constexpr int kEnough = (LossSpikes::kHigh + 1) * LossSpikes::kBlock;

  ASSERT_TRUE(Train(kEnough, 6.0));
  EXPECT_GE(last_.round + LossSpikes::kBlock, began);
  EXPECT_LE(last_.round, began + LossSpikes::kBlock);
  EXPECT_NEAR(last_.before, 2.0, 0.1);
  EXPECT_NEAR(last_.after, 6.0, 0.6);
}

TEST_F(LossSpikesTest, WhatPassesIsNone) {
  Train(400, 2.0);
  EXPECT_FALSE(Train((LossSpikes::kHigh - 1) * LossSpikes::kBlock, 20.0));
  EXPECT_FALSE(Train(400, 2.0));
}

TEST_F(LossSpikesTest, ALossThatHardlyVariesMayRiseByHalf) {
  Train(400, 2.0, 0.001);
  EXPECT_FALSE(Train(100, 2.9, 0.001));
  EXPECT_TRUE(Train(100, 4.5, 0.001));
}

TEST_F(LossSpikesTest, ALossThatVariesMuchMayRiseByMore) {
  Train(400, 2.0, 1.5);
  EXPECT_FALSE(Train(100, 4.0, 1.5));
}

TEST_F(LossSpikesTest, ALossThatRisesSlowlyTakesTheMedianAlong) {
  Train(400, 2.0);
  for (double loss = 2.0; loss < 20; loss *= 1.01) EXPECT_FALSE(Train(LossSpikes::kBlock, loss));
}

TEST_F(LossSpikesTest, NoFalseAlarmInTenThousandRunsOfNoise) {
  for (int run = 0; run < 10'000; ++run) {
    spikes_.Reset();
    ASSERT_FALSE(Train(200, 1.0, 0.05 * (run % 20))) << run;
  }
}

TEST_F(LossSpikesTest, AnotherPlanExplainsALossAndOtherSharesDoNot) {
  Train(400, 2.0);
  plan_.version = 2;
  plan_.period = 8;
  plan_.synchronization = Synchronization::kPeriodic;
  EXPECT_FALSE(Train(400, 6.0)) << "the planner judges it";

  Train(400, 2.0);
  plan_.version = 3;
  plan_.batch_sizes = {4, 12};
  EXPECT_TRUE(Train(400, 6.0));
}

TEST_F(LossSpikesTest, NumbersThatAreNoneAreNothing) {
  Train(400, 2.0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(spikes_.Add(round_++, std::numeric_limits<double>::infinity(), plan_));
  }
  EXPECT_TRUE(Train(400, 6.0));
}

TEST_F(LossSpikesTest, LossesBelowNothingAreNotJudged) {
  Train(400, 2.0);
  EXPECT_FALSE(spikes_.Add(round_++, -1, plan_));
  EXPECT_FALSE(Train(100, 6.0)) << "it begins anew";
}

}  // namespace
}  // namespace tactus::policies
