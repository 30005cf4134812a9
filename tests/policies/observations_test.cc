#include "policies/observations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

Observations Group(const Plan& plan) {
  Observations seen;
  seen.Start({.members = static_cast<std::uint32_t>(plan.batch_sizes.size())});
  seen.Expect(plan);
  return seen;
}

TEST(ObservationsTest, ARoundIsWholeWhenEveryMemberReportedIt) {
  Observations seen = Group(TwoMembers());
  const std::vector<Report> reports = ReportsOf(TwoMembers(), 7, {});

  seen.Observe(reports[0]);
  EXPECT_TRUE(seen.rounds().empty());
  seen.Observe(reports[1]);

  ASSERT_EQ(seen.rounds().size(), 1u);
  EXPECT_EQ(seen.last_round(), 7u);
  EXPECT_EQ(seen.rounds()[0].samples, 64u);
}

TEST(ObservationsTest, RepeatedLateAndStrangeReportsAreLeftOut) {
  Observations seen = Group(TwoMembers());
  std::vector<Report> reports = ReportsOf(TwoMembers(), 3, {});
  Report stranger = reports[0];
  stranger.rank = 2;

  seen.Observe(stranger);
  seen.Observe(reports[0]);
  seen.Observe(reports[0]);
  EXPECT_TRUE(seen.rounds().empty());
  seen.Observe(reports[1]);
  ObserveRounds(seen, TwoMembers(), {.first = 2, .count = 1});

  EXPECT_EQ(seen.rounds().size(), 1u);
}

TEST(ObservationsTest, ARoundThatOneMemberNeverReportsHoldsNothingUp) {
  Observations seen = Group(TwoMembers());
  seen.Observe(ReportsOf(TwoMembers(), 0, {})[0]);

  ObserveRounds(seen, TwoMembers(), {.first = 1, .count = 3});

  EXPECT_EQ(seen.rounds().size(), 3u);
}

TEST(ObservationsTest, RoundsThatStayOpenAreBounded) {
  Observations seen = Group(TwoMembers());
  for (std::uint64_t round = 0; round < 100; ++round) {
    seen.Observe(ReportsOf(TwoMembers(), round, {})[0]);
  }

  for (std::uint64_t round = 0; round < 100; ++round) {
    seen.Observe(ReportsOf(TwoMembers(), round, {})[1]);
  }

  EXPECT_LE(seen.rounds().size(), static_cast<std::size_t>(Observations::kOpenRoundsMax));
  EXPECT_EQ(seen.last_round(), 99u);
}

TEST(ObservationsTest, TheTransferIsWhatTheSlowestMemberIsBlocked) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);

  ObserveRounds(seen, plan, {.count = 2}, {.speeds = {100, 25}, .transfer_seconds = 0.3});
  EXPECT_FALSE(seen.TransferSeconds().has_value());
  ObserveRounds(seen, plan, {.first = 2, .count = 1},
                {.speeds = {100, 25}, .transfer_seconds = 0.3});

  EXPECT_NEAR(seen.TransferSeconds().value_or(0), 0.3, 1e-12);
}

// Two members that send each other their whole vectors, 1 ms each: the last to come has the other's
// already. Computing takes 8 ms, give or take.
TEST(ObservationsTest, TheTransferIsNotNoneWhereTheLastToComeIsNotBlocked) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  Rng rng(5);
  std::array<double, 2> begun{};
  double own_longest = 0;
  constexpr int kRounds = 15;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    std::array<double, 2> done{};
    for (std::size_t i = 0; i < 2; ++i) done[i] = begun[i] + 0.008 + 0.0004 * rng.Normal();
    std::vector<Report> reports = ReportsOf(plan, round, {});
    double own = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const double end = std::max(done[i], done[1 - i] + 0.001);
      reports[i].compute_seconds = done[i] - begun[i];
      reports[i].blocked_seconds = end - done[i];
      reports[i].round_seconds = end - begun[i];
      own = std::max(own, reports[i].compute_seconds);
      begun[i] = end;
    }
    own_longest += own;
    for (const Report& report : reports) seen.Observe(report);
  }

  const double lost = (begun[0] + begun[1]) / 2 - own_longest;
  EXPECT_GT(lost / kRounds, 0.0004);
  EXPECT_NEAR(*seen.TransferSeconds(), lost / kRounds, 0.00015);
}

// Reports without a round's length, as of older workers.
TEST(ObservationsTest, WhereNoLengthIsToldItIsWhatTheLastToComeIsBlocked) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Report> reports = ReportsOf(plan, round, {.transfer_seconds = 0.3});
    reports[1].round_seconds = 0;
    for (const Report& report : reports) seen.Observe(report);
  }

  EXPECT_NEAR(*seen.TransferSeconds(), 0.3, 1e-12);
}

TEST(ObservationsTest, WhenDelayedTheTransferIsThatOfTheLastToStartIt) {
  Plan plan = TwoMembers();
  plan.synchronization = Synchronization::kDelayed;
  Observations seen = Group(plan);

  for (std::uint64_t round = 0; round < 5; ++round) {
    std::vector<Report> reports = ReportsOf(plan, round, {});
    for (Report& report : reports) report.blocked_seconds = 0;
    reports[0].transfer_seconds = 0.9;
    reports[1].transfer_seconds = 0.7;
    for (const Report& report : reports) seen.Observe(report);
  }

  EXPECT_NEAR(seen.TransferSeconds().value_or(0), 0.7, 1e-12);
}

TEST(ObservationsTest, AFewLongTransfersDoNotMoveTheMedian) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);

  ObserveRounds(seen, plan, {.count = 9}, {.transfer_seconds = 0.1});
  ObserveRounds(seen, plan, {.first = 9, .count = 5}, {.transfer_seconds = 5});

  EXPECT_NEAR(seen.TransferSeconds().value_or(0), 0.1, 1e-12);
}

// While a plan travels that exchanges otherwise, nothing tells how long that takes.
TEST(ObservationsTest, TransfersOfAnotherEncodingSayNothingOfTheNewestPlans) {
  const Plan dense = TwoMembers();
  Plan halves = dense;
  halves.version = 2;
  halves.encoding = Encoding::kFloat16;
  Observations seen = Group(dense);
  ObserveRounds(seen, dense, {.count = 5}, {.transfer_seconds = 0.4});

  seen.Expect(halves);
  ObserveRounds(seen, dense, {.first = 5, .count = 2}, {.transfer_seconds = 0.4});
  ObserveRounds(seen, halves, {.first = 7, .count = 2}, {.transfer_seconds = 0.2});
  EXPECT_FALSE(seen.TransferSeconds().has_value());
  ObserveRounds(seen, halves, {.first = 9, .count = 1}, {.transfer_seconds = 0.2});

  EXPECT_NEAR(seen.TransferSeconds().value_or(0), 0.2, 1e-12);
  EXPECT_EQ(seen.rounds()[6].encoding, Encoding::kDense);
  EXPECT_EQ(seen.rounds()[7].encoding, Encoding::kFloat16);
}

TEST(ObservationsTest, TimeIsTheSumOfTheRoundsAndOutlivesTheGroup) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  ObserveRounds(seen, plan, {.count = 10}, {.speeds = {64, 64}, .transfer_seconds = 0.5});

  seen.Start({.members = 3});

  EXPECT_NEAR(seen.seconds(), 10 * (32.0 / 64 + 0.5), 1e-9);
  EXPECT_EQ(seen.members(), 3u);
  EXPECT_FALSE(seen.SpeedsKnown());
  EXPECT_FALSE(seen.TransferSeconds().has_value());
  EXPECT_EQ(seen.rounds().size(), 10u);
}

TEST(ObservationsTest, SpeedsAreThoseOfTheReports) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);

  ObserveRounds(seen, plan, {.count = 5}, {.speeds = {80, 20}});

  ASSERT_TRUE(seen.SpeedsKnown());
  EXPECT_NEAR(seen.speeds()[0], 80, 1e-9);
  EXPECT_NEAR(seen.speeds()[1], 20, 1e-9);
  EXPECT_NEAR(seen.SpeedSum(), 100, 1e-9);
  EXPECT_NEAR(seen.StepSeconds({40, 40}), 2, 1e-9);
}

TEST(ObservationsTest, TheRecentLossWeighsSamplesOverAtLeastTwentyMiniBatches) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  ObserveRounds(seen, plan, {.count = 10}, {.loss = 100});
  EXPECT_FALSE(seen.RecentLoss().has_value());

  ObserveRounds(seen, plan, {.first = 10, .count = 10}, {.loss = 3});
  ObserveRounds(seen, plan, {.first = 20, .count = 10}, {.loss = 1});

  EXPECT_NEAR(seen.RecentLoss().value_or(0), 2, 1e-12);
}

TEST(ObservationsTest, SkippedRoundsTeachNothingOfTheLossAndOfGradients) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  ObserveRounds(seen, plan, {.count = 30}, {.loss = 2, .noise_scale = 50});

  const double bad = std::numeric_limits<double>::quiet_NaN();
  ObserveRounds(seen, plan, {.first = 30, .count = 10}, {.loss = bad, .noise_scale = 1e6});
  ObserveRounds(seen, plan, {.first = 40, .count = 10},
                {.loss = 9, .noise_scale = 1e6, .nonfinite_members = 1});

  EXPECT_NEAR(seen.RecentLoss().value_or(0), 2, 1e-12);
  EXPECT_NEAR(seen.NoiseScale().value_or(0), 50, 1e-6);
}

TEST(ObservationsTest, StepsAndWindowsMeasureTheNoiseScaleEachForThemselves) {
  const Plan steps = TwoMembers();
  Plan periodic = TwoMembers();
  periodic.synchronization = Synchronization::kPeriodic;
  periodic.period = 8;
  Observations seen = Group(steps);

  ObserveRounds(seen, steps, {.count = 20}, {.noise_scale = 300});
  ObserveRounds(seen, periodic, {.first = 20, .count = 5}, {.noise_scale = 100});
  EXPECT_NEAR(seen.NoiseScale().value_or(0), 300, 1e-6) << "too few windows yet";
  ObserveRounds(seen, periodic, {.first = 25, .count = 5}, {.noise_scale = 100});
  EXPECT_NEAR(seen.NoiseScale().value_or(0), 100, 1e-6);
  // What steps told before is out of date by then.
  ObserveRounds(seen, steps, {.first = 30, .count = 9}, {.noise_scale = 50});
  EXPECT_NEAR(seen.NoiseScale().value_or(0), 100, 1e-6);
  ObserveRounds(seen, steps, {.first = 39, .count = 1}, {.noise_scale = 50});

  EXPECT_NEAR(seen.NoiseScale().value_or(0), 50, 1e-6);
}

TEST(ObservationsTest, RoundsOfAdasumDoNotMeasureTheNoiseScale) {
  Plan plan = TwoMembers();
  plan.aggregation = Aggregation::kAdasum;
  Observations seen = Group(plan);

  ObserveRounds(seen, plan, {.count = 50});

  EXPECT_FALSE(seen.NoiseScale().has_value());
}

TEST(ObservationsTest, OrthogonalityIsSmoothedOverTwentyRounds) {
  const Plan plan = TwoMembers();
  Observations seen = Group(plan);
  ObserveRounds(seen, plan, {.count = 19}, {.orthogonality = 0.5});
  EXPECT_FALSE(seen.Orthogonality().has_value());

  ObserveRounds(seen, plan, {.first = 19, .count = 1}, {.orthogonality = 0.5});
  EXPECT_NEAR(seen.Orthogonality().value_or(0), 0.5, 1e-12);
  ObserveRounds(seen, plan, {.first = 20, .count = 1}, {.orthogonality = 1});

  EXPECT_NEAR(seen.Orthogonality().value_or(0), 0.525, 1e-12);
}

TEST(ObservationsTest, SpansAreFoundByVersionWithoutTheEarliest) {
  Plan plan = TwoMembers();
  Observations seen = Group(plan);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    plan.version = version;
    seen.Expect(plan);
    ObserveRounds(seen, plan, {.first = 10 * version, .count = 10});
  }

  const Observations::Range all = seen.Find({.first = 2, .end = 3});
  const Observations::Range later = seen.Find({.first = 2, .end = 3, .leave_out = 4});
  const Observations::Range last = seen.Find({.first = 1, .end = 9, .most = 5});

  EXPECT_EQ(all.from, 10u);
  EXPECT_EQ(all.to, 20u);
  EXPECT_EQ(later.from, 14u);
  EXPECT_EQ(last.from, 25u);
  EXPECT_EQ(seen.Find({.first = 7, .end = 9}).from, seen.Find({.first = 7, .end = 9}).to);
}

// An epoch's last step is a part of any plan's step, so a tenth of it would have been saved.
TEST(ObservationsTest, WhatTheSharesBeforeWouldHaveTakenIsByThePlansSizes) {
  Observations seen;
  seen.Start({.members = 2});
  Plan plan = TwoMembers();
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.first = 0, .count = 2});
  plan.version = 2;
  plan.batch_sizes = {48, 16};
  seen.Expect(plan);
  std::vector<Report> reports = ReportsOf(plan, 2, {.speeds = {150, 50}});
  for (Report& report : reports) seen.Observe(report);
  reports = ReportsOf(plan, 3, {.speeds = {150, 50}});
  for (Report& report : reports) {
    report.samples /= 8;
    report.compute_seconds /= 8;
    seen.Observe(report);
  }

  // 48 / 150 s and 16 / 50 s; with 32 each 32 / 50 s.
  ASSERT_EQ(seen.rounds().size(), 4u);
  EXPECT_EQ(seen.rounds()[1].compute_seconds_before, 0) << "of the first plan";
  EXPECT_NEAR(seen.rounds()[2].compute_seconds, 0.32, 1e-12);
  EXPECT_NEAR(seen.rounds()[2].compute_seconds_before, 0.64, 1e-12);
  EXPECT_NEAR(seen.rounds()[3].compute_seconds_before, 0.08, 1e-12);
}

TEST(ObservationsTest, RoundsOfANewPlanAreOfItsKindAsSoonAsItIsExpected) {
  const Plan before = TwoMembers();
  Plan after = before;
  after.version = 2;
  after.synchronization = Synchronization::kPeriodic;
  after.period = 4;
  Observations seen = Group(before);
  seen.Expect(after);

  ObserveRounds(seen, before, {.count = 1});
  ObserveRounds(seen, after, {.first = 1, .count = 1});

  EXPECT_EQ(seen.rounds()[0].synchronization, Synchronization::kEveryStep);
  EXPECT_EQ(seen.rounds()[1].synchronization, Synchronization::kPeriodic);
}

}  // namespace
}  // namespace tactus::policies
