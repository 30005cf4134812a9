#include "policies/proportional_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tactus::policies {
namespace {

using Sizes = std::vector<std::uint32_t>;

// Reports `rounds` rounds without noise of workers with these speeds and sizes.
void ObserveRounds(ProportionalBatch& policy, int rounds, const std::vector<double>& speeds,
                   const Sizes& sizes) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
      policy.Observe({.round = static_cast<std::uint64_t>(round),
                      .rank = static_cast<std::uint32_t>(rank),
                      .samples = sizes[rank],
                      .compute_seconds = sizes[rank] / speeds[rank]});
    }
  }
}

TEST(ProportionalBatchTest, LeavesTheSizesUntilAStretchOfEveryMemberWasSeen) {
  ProportionalBatch policy({.per_worker = 32});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;

  ObserveRounds(policy, 1, {1600, 320}, sizes);  // left out: it builds what others reuse
  ObserveRounds(policy, 4, {1600, 320}, sizes);  // 0.08 s of one
  const BatchDecision early = policy.Decide(sizes);
  ObserveRounds(policy, 1, {1600, 320}, sizes);
  const BatchDecision late = policy.Decide(sizes);

  EXPECT_TRUE(early.batch_sizes.empty());
  EXPECT_FALSE(early.reason.empty());
  EXPECT_EQ(late.batch_sizes, (Sizes{54, 10}));
}

TEST(ProportionalBatchTest, AnswersOnceAStretch) {
  ProportionalBatch policy({.per_worker = 32});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  ObserveRounds(policy, 10, {100, 20}, sizes);

  EXPECT_FALSE(policy.Decide(sizes).batch_sizes.empty());
  EXPECT_EQ(policy.Decide(sizes).reason, "left: nothing new was measured");
}

TEST(ProportionalBatchTest, PredictsTheFallOfTheRoundsTime) {
  ProportionalBatch policy({.per_worker = 40});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  ObserveRounds(policy, 10, {300, 100}, sizes);

  const BatchDecision decision = policy.Decide(sizes);

  EXPECT_EQ(decision.batch_sizes, (Sizes{60, 20}));
  // 40 / 100 s → 20 / 100 s, less what such promises were missed by: 0.02 / 0.5 of the prior,
  // with 4 / (4 + 4 promises that came true) of its weight at most, and fewer for long memories.
  EXPECT_LT(decision.predicted_gain, 0.5);
  EXPECT_GT(decision.predicted_gain, 0.5 - 0.02 / 0.5 / 2);
}

TEST(ProportionalBatchTest, ReasonNamesTheSlowestRankTheSpeedsAndTheTimes) {
  ProportionalBatch policy({.per_worker = 40});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  ObserveRounds(policy, 10, {300, 98}, sizes);

  const std::string reason = policy.Decide(sizes).reason;

  EXPECT_EQ(reason,
            "shares follow speed: rank 1 computes 98.0 samples/s against 300 on the fastest; "
            "round 0.41 s → 0.20 s");
}

TEST(ProportionalBatchTest, WhatSlowsADeviceDownIsSeenAtOnceAndNamed) {
  ProportionalBatch policy({.per_worker = 40});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  const auto round = [&](double slower, const std::string& slowdown) {
    policy.Observe({.rank = 0, .samples = 40, .compute_seconds = 0.1});
    policy.Observe(
        {.rank = 1, .samples = 40, .compute_seconds = 0.1 * slower, .slowdown = slowdown});
  };
  for (int i = 0; i < 50; ++i) round(1, "");
  EXPECT_THAT(policy.Decide(sizes).batch_sizes, testing::IsEmpty());

  for (int i = 0; i < 2; ++i) round(2, "hardware thermal slowdown");  // in the first it shows
  const BatchDecision decision = policy.Decide(sizes);

  EXPECT_GT(decision.predicted_gain, 0.2);
  EXPECT_THAT(decision.reason,
              testing::HasSubstr("slowed down by its device (hardware thermal slowdown)"));
}

TEST(ProportionalBatchTest, LeavesSizesThatFitTheSpeeds) {
  ProportionalBatch policy({.per_worker = 40});
  policy.Start({.members = 2});
  ObserveRounds(policy, 50, {300, 100}, {60, 20});

  const BatchDecision decision = policy.Decide({60, 20});

  EXPECT_TRUE(decision.batch_sizes.empty());
  EXPECT_FALSE(decision.reason.empty());
}

TEST(ProportionalBatchTest, LeavesSizesForAGainBelowTheLeast) {
  ProportionalBatch policy({.per_worker = 1000});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  ObserveRounds(policy, 5000, {102, 98}, sizes);  // 2 % to gain

  EXPECT_TRUE(policy.Decide(sizes).batch_sizes.empty());
}

TEST(ProportionalBatchTest, IgnoresReportsOfRanksThatAreNotThere) {
  ProportionalBatch policy({.per_worker = 32});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;

  policy.Observe({.rank = 2, .samples = 32, .compute_seconds = 1});
  policy.Observe(
      {.rank = std::numeric_limits<std::uint32_t>::max(), .samples = 1, .compute_seconds = 1});
  ObserveRounds(policy, 10, {100, 20}, sizes);

  EXPECT_EQ(policy.Decide(sizes).batch_sizes, (Sizes{54, 10}));
}

TEST(ProportionalBatchTest, IgnoresReportsWithoutMeaning) {
  ProportionalBatch policy({.per_worker = 32});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;
  ObserveRounds(policy, 10, {100, 20}, sizes);

  for (const double seconds :
       {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    policy.Observe({.rank = 0, .samples = 32, .compute_seconds = seconds});
  }
  policy.Observe({.rank = 1, .samples = 0, .compute_seconds = 1});

  EXPECT_EQ(policy.Decide(sizes).batch_sizes, (Sizes{54, 10}));
}

TEST(ProportionalBatchTest, ForgetsFormerRanksWhenANewGroupStarts) {
  ProportionalBatch policy({.per_worker = 32});
  ObserveRounds(policy, 10, {100, 20}, policy.Start({.members = 2}).batch_sizes);

  const Sizes sizes = policy.Start({.members = 3}).batch_sizes;

  EXPECT_EQ(sizes, (Sizes{32, 32, 32}));
  EXPECT_TRUE(policy.Decide(sizes).batch_sizes.empty());
  ObserveRounds(policy, 10, {50, 50, 100}, sizes);
  EXPECT_EQ(policy.Decide(sizes).batch_sizes, (Sizes{24, 24, 48}));
}

TEST(ProportionalBatchTest, HasAnAnswerWhenAskedAboutAnotherGroup) {
  ProportionalBatch policy({.per_worker = 32});

  EXPECT_TRUE(policy.Decide({}).batch_sizes.empty());
  policy.Start({.members = 2});
  EXPECT_TRUE(policy.Decide({1, 2, 3}).batch_sizes.empty());
  EXPECT_FALSE(policy.Decide({1, 2, 3}).reason.empty());
}

TEST(ProportionalBatchTest, KeepsTheBounds) {
  ProportionalBatch policy({.per_worker = 32, .batch_min = 16, .batch_max = 40});
  const Sizes sizes = policy.Start({.members = 3}).batch_sizes;
  ObserveRounds(policy, 10, {100, 100, 1}, sizes);

  EXPECT_EQ(policy.Decide(sizes).batch_sizes, (Sizes{40, 40, 16}));
}

TEST(ProportionalBatchTest, RestoresTheSumWhenTheSizesInForceHaveAnother) {
  ProportionalBatch policy({.per_worker = 32});
  policy.Start({.members = 2});
  ObserveRounds(policy, 10, {100, 100}, {80, 20});

  const Sizes proposed = policy.Decide({80, 20}).batch_sizes;

  EXPECT_EQ(proposed, (Sizes{32, 32}));
}

TEST(ProportionalBatchTest, StartsWithTheSpeedsThatWereTriedOut) {
  ProportionalBatch policy({.per_worker = 30});

  EXPECT_EQ(policy.Start({.members = 3, .speeds = {300, 300, 150}}).batch_sizes,
            (Sizes{36, 36, 18}));
  EXPECT_EQ(policy.Start({.members = 3, .speeds = {300, 0, 150}}).batch_sizes, (Sizes{30, 30, 30}));
  EXPECT_EQ(policy.Start({.members = 3, .speeds = {300, 150}}).batch_sizes, (Sizes{30, 30, 30}));
}

}  // namespace
}  // namespace tactus::policies
