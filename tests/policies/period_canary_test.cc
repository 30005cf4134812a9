#include "policies/period_canary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "base/rng.h"
#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

// Windows of a period of 16 whose loss falls with the logarithm of time, then a canary of 4.
class PeriodCanaryTest : public testing::Test {
 protected:
  PeriodCanaryTest() {
    plan_.synchronization = Synchronization::kPeriodic;
    plan_.period = 16;
    seen_.Start({.members = 2});
    seen_.Expect(plan_);
    Run(100, 0);
  }

  // The rounds' loss lies `lower` below the line.
  void Run(int rounds, double lower) {
    for (int i = 0; i < rounds; ++i) {
      const double loss = 3 - kFall * std::log(seen_.seconds() + 1) - lower;
      ObserveRounds(seen_, plan_, {.first = round_++}, {.loss = loss + 0.02 * rng_.Normal()});
    }
  }

  void Begin(PeriodCanary::Setting setting = {}) {
    setting.version_before = 1;
    setting.version = 2;
    setting.seconds_start = seen_.seconds();
    setting.base_batch = 32;
    canary_.emplace(setting, seen_);
    plan_.version = 2;
    plan_.period = 4;
    seen_.Expect(plan_);
  }

  PeriodCanary::Outcome RunToTheEnd(double lower) {
    for (int i = 0; i < 1000; ++i) {
      Run(1, lower);
      if (const auto outcome = canary_->Look(seen_)) return *outcome;
    }
    ADD_FAILURE() << "no end";
    return {};
  }

  static constexpr double kFall = 0.3;
  Observations seen_;
  Plan plan_ = TwoMembers();
  std::optional<PeriodCanary> canary_;
  Rng rng_{1};
  std::uint64_t round_ = 0;
};

TEST_F(PeriodCanaryTest, ALossThatGoesOnAsBeforeIsNotLowerAndThePaceCosts) {
  Begin();

  const PeriodCanary::Outcome outcome = RunToTheEnd(0);

  EXPECT_NEAR(outcome.lower, 0, 4 * outcome.error);
  // Windows of 16 steps of 0.32 s and 0.1 s of transfer against such of 4: 0.326 s and 0.345 s.
  EXPECT_NEAR(outcome.useful / outcome.useful_before, 0.32625 / 0.345, 1e-6);
  EXPECT_NEAR(outcome.cost, kFall * (std::log(2) - std::log1p(0.32625 / 0.345)), 0.005);
}

TEST_F(PeriodCanaryTest, ALossBelowTheLineIsSeen) {
  Begin();

  const PeriodCanary::Outcome outcome = RunToTheEnd(0.2);

  EXPECT_NEAR(outcome.lower, 0.2, 4 * outcome.error);
  EXPECT_GT(outcome.value(), PeriodCanary::kErrors * outcome.error);
}

TEST_F(PeriodCanaryTest, ItLastsATwentiethOfTheTimeAndFortySteps) {
  Begin();
  const double start = seen_.seconds();

  RunToTheEnd(0.2);

  EXPECT_GE(seen_.seconds() - start, PeriodCanary::kShare * seen_.seconds());
  EXPECT_LE(seen_.seconds() - start, 2 * PeriodCanary::kShare * seen_.seconds());
}

// Ten steps of a window take longer than a twentieth of the time so far.
TEST_F(PeriodCanaryTest, EarlyItLastsAsLongAsFortySteps) {
  Observations seen;
  seen.Start({.members = 2});
  seen.Expect(plan_);
  ObserveRounds(seen, plan_, {.count = 5});
  PeriodCanary canary({.version_before = 1, .version = 2, .seconds_start = seen.seconds()}, seen);
  plan_.version = 2;
  plan_.period = 4;
  seen.Expect(plan_);

  std::uint64_t rounds = 0;
  do ObserveRounds(seen, plan_, {.first = 5 + rounds++});
  while (!canary.Look(seen));

  EXPECT_EQ(rounds, PeriodCanary::kStepsMin / 4);
}

// The noise scale moves while the canary runs, which must not look like another pace.
TEST_F(PeriodCanaryTest, ThePaceIsThatOfOneNoiseScale) {
  Begin();
  const double noise_before = *seen_.NoiseScale();
  std::optional<PeriodCanary::Outcome> outcome;
  while (!outcome) {
    ObserveRounds(seen_, plan_, {.first = round_++}, {.loss = 1, .noise_scale = 100'000});
    outcome = canary_->Look(seen_);
  }

  ASSERT_GT(*seen_.NoiseScale(), 2 * noise_before);
  EXPECT_NEAR(outcome->useful / outcome->useful_before, 0.32625 / 0.345, 1e-6);
}

TEST_F(PeriodCanaryTest, WhereItIsInDoubtItIsProlongedOnce) {
  Begin();
  const double start = seen_.seconds();

  // What its pace costs, 0.006, and one standard error above.
  const PeriodCanary::Outcome outcome = RunToTheEnd(0.011);

  const double share = (seen_.seconds() - start) / seen_.seconds();
  EXPECT_GE(share, PeriodCanary::kShareMost) << outcome.value() << " +- " << outcome.error;
  EXPECT_LE(share, PeriodCanary::kShareMost + 0.02);
}

TEST_F(PeriodCanaryTest, NumbersThatAreNotFiniteEndItAtOnce) {
  Begin();
  Run(1, 0);
  ASSERT_FALSE(canary_->Look(seen_));

  ObserveRounds(seen_, plan_, {.first = round_++}, {.nonfinite_members = 1});

  const std::optional<PeriodCanary::Outcome> outcome = canary_->Look(seen_);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->alarm, "numbers were not finite");
  EXPECT_TRUE(outcome->higher);
  EXPECT_FALSE(outcome->Pays(0));
}

// Long before a twentieth of the time.
TEST_F(PeriodCanaryTest, ALossThatRisesEndsItEarly) {
  Begin();
  const double start = seen_.seconds();

  const PeriodCanary::Outcome outcome = RunToTheEnd(-1);

  EXPECT_LT(seen_.seconds() - start, 0.5 * PeriodCanary::kShare * seen_.seconds());
  EXPECT_FALSE(outcome.Pays(0));
  EXPECT_TRUE(outcome.higher);
  Decision decision;
  outcome.Explain("another period", decision);
  EXPECT_TRUE(decision.reason.starts_with("another period did not pay: the loss rose to "))
      << decision.reason;
}

// Above the line it is still lower than where it began: what it learned is no loss.
TEST_F(PeriodCanaryTest, WhatLedUpIsToldFromWhatLedDownMoreSlowly) {
  Begin();
  Run(static_cast<int>(round_), 0);  // of ln 2 more, by which the loss falls by 0.2

  EXPECT_FALSE(RunToTheEnd(-0.1).higher);

  Begin();
  EXPECT_TRUE(RunToTheEnd(-0.1).higher);
}

// 40 steps of 0.4 s each, of 15 % of the time.
TEST_F(PeriodCanaryTest, OneThatWouldTakeMoreThanItsShareIsNotBegun) {
  Observations seen;
  Plan plan = TwoMembers();
  seen.Start({.members = 2});
  seen.Expect(plan);
  std::uint64_t rounds = 0;
  const auto comparable = [&] {
    return PeriodCanary::Comparable(
        {.version_before = 1, .version = 2, .seconds_start = seen.seconds()}, seen);
  };
  while (!comparable() && rounds < 1000) ObserveRounds(seen, plan, {.first = rounds++});

  EXPECT_EQ(rounds, std::ceil(PeriodCanary::kStepsMin / PeriodCanary::kShareMost));
}

// Rounds of half the length in twice the share of the time.
TEST_F(PeriodCanaryTest, WhatPromisesALargePaceBeginsSoonerByRoundsOfItsOwnLength) {
  Observations seen;
  Plan plan = TwoMembers();
  seen.Start({.members = 2});
  seen.Expect(plan);
  std::uint64_t rounds = 0;
  const auto begun_by = [&](const PeriodCanary::Expected& expected) {
    while (
        !PeriodCanary::Comparable(
            {.version_before = 1, .version = 2, .seconds_start = seen.seconds()}, seen, expected) &&
        rounds < 1000) {
      ObserveRounds(seen, plan, {.first = rounds++});
    }
    return rounds;
  };
  const double steps = PeriodCanary::kStepsMin;
  const double second = 0.42;  // of a round: 0.32 s of a step and 0.1 s of transfer

  const auto sooner = begun_by({.round_seconds = second / 2, .pace = 2});
  const auto by_length = begun_by({.round_seconds = second / 2, .pace = 1.9});
  const auto as_before = begun_by({.round_seconds = second, .pace = 1.9});

  EXPECT_NEAR(sooner, steps / 2 / PeriodCanary::kShareLarge, 1);
  EXPECT_NEAR(by_length, steps / 2 / PeriodCanary::kShareMost, 1);
  EXPECT_NEAR(as_before, steps / PeriodCanary::kShareMost, 1);
}

// Of a canary of progress: whatever the pace, only the loss counts.
TEST_F(PeriodCanaryTest, OfProgressThePaceAloneIsWorthNothing) {
  Begin({.of_progress = true});

  const PeriodCanary::Outcome outcome = RunToTheEnd(0);

  EXPECT_EQ(outcome.cost, 0);
  EXPECT_NEAR(outcome.lower, 0, 4 * outcome.error);
  EXPECT_FALSE(outcome.Pays(PeriodCanary::kErrors));
  ASSERT_TRUE(outcome.worth.has_value());
  // Going on as before, by the same pace but for the longer rounds.
  EXPECT_NEAR(*outcome.worth, 1, 1);
}

// What the line had at twice the time that has passed is there already.
TEST_F(PeriodCanaryTest, OfProgressASampleIsWorthWhatTheLossSaysOfIt) {
  const double start = seen_.seconds();
  Begin({.of_progress = true});
  std::optional<PeriodCanary::Outcome> outcome;
  while (!outcome) {
    const double passed = seen_.seconds() - start;
    const double reached = start + 2 * passed;
    ObserveRounds(seen_, plan_, {.first = round_++}, {.loss = 3 - kFall * std::log(reached + 1)});
    outcome = canary_->Look(seen_);
  }

  ASSERT_TRUE(outcome->worth.has_value());
  const double pace = outcome->useful / outcome->useful_before;
  EXPECT_NEAR(*outcome->worth * pace, 2, 0.7);
}

// What it weighs is what would come until the training time has doubled.
TEST_F(PeriodCanaryTest, OneWhoseHorizonTrainingDoesNotReachIsNotBegun) {
  const PeriodCanary::Setting setting{
      .version_before = 1, .version = 2, .seconds_start = seen_.seconds()};

  seen_.Outlook(0.99 * seen_.seconds());
  EXPECT_FALSE(PeriodCanary::Comparable(setting, seen_));
  seen_.Outlook(seen_.seconds());
  EXPECT_TRUE(PeriodCanary::Comparable(setting, seen_));
  seen_.Outlook(std::nullopt);
  EXPECT_TRUE(PeriodCanary::Comparable(setting, seen_));
}

TEST_F(PeriodCanaryTest, OfFewRoundsNothingCanBeCompared) {
  const PeriodCanary::Setting whole{
      .version_before = 1, .version = 2, .seconds_start = seen_.seconds()};
  PeriodCanary::Setting late = whole;
  late.seconds_before = seen_.seconds();

  EXPECT_TRUE(PeriodCanary::Comparable(whole, seen_));
  EXPECT_FALSE(PeriodCanary::Comparable(late, seen_));
}

}  // namespace
}  // namespace tactus::policies
