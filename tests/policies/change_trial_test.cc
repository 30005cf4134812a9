#include "policies/change_trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "base/rng.h"
#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

using Verdict = ChangeTrial::Verdict;

// Rounds whose loss falls by a power of time, before and after a change from version 1 to 2.
class ChangeTrialTest : public testing::Test {
 protected:
  struct Course {
    double transfer_seconds = 0.32;  // beside a step of 0.32 s
    double power = 0.5;
    double factor = 1;  // of the loss, at once
    std::uint32_t nonfinite_members = 0;
  };

  ChangeTrialTest() {
    seen_.Start({.members = 2});
    seen_.Expect(plan_);
    Run(40, {});
  }

  void Change() {
    trial_.emplace(ChangeTrial::Setting{
        .version_before = 1, .version = 2, .seconds_start = seen_.seconds(), .base_batch = 32});
    plan_.version = 2;
    seen_.Expect(plan_);
  }

  // Returns the first verdict that is not open, or the last.
  ChangeTrial::Judgement Run(int rounds, const Course& course) {
    ChangeTrial::Judgement judgement;
    loss_ *= course.factor;
    for (int i = 0; i < rounds; ++i) {
      const double before = seen_.seconds() + 1;
      const double after = before + 0.32 + course.transfer_seconds;
      loss_ *= std::pow(after / before, -course.power);
      ObserveRounds(seen_, plan_, {.first = round_++},
                    {.transfer_seconds = course.transfer_seconds,
                     .loss = loss_ * (1 + 0.01 * rng_.Normal()),
                     .nonfinite_members = course.nonfinite_members});
      if (!trial_) continue;
      ++rounds_of_trial_;
      judgement = trial_->Look(seen_);
      if (judgement.verdict != Verdict::kOpen) break;
    }
    return judgement;
  }

  Observations seen_;
  Plan plan_ = TwoMembers();
  std::optional<ChangeTrial> trial_;
  Rng rng_{1};
  double loss_ = 2;
  std::uint64_t round_ = 0;
  int rounds_of_trial_ = 0;
};

TEST_F(ChangeTrialTest, AFasterRoundWithALossThatGoesOnIsKeptAfterTwentyRounds) {
  Change();

  EXPECT_EQ(Run(100, {.transfer_seconds = 0.1}).verdict, Verdict::kKept);
  EXPECT_EQ(rounds_of_trial_, ChangeTrial::kRounds + ChangeTrial::kRoundsOfChange);
}

TEST_F(ChangeTrialTest, SlowerRoundsAreRegrettedAtTheFirstLook) {
  Change();

  const ChangeTrial::Judgement judgement = Run(100, {.transfer_seconds = 0.4});

  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_FALSE(judgement.reason.empty());
  EXPECT_EQ(rounds_of_trial_, ChangeTrial::kRoundsMin + ChangeTrial::kRoundsOfChange);
  const ChangeTrial::Evidence evidence = trial_->Compare(seen_);
  EXPECT_NEAR(evidence.useful / evidence.useful_before, 0.64 / 0.72, 1e-6);
}

TEST_F(ChangeTrialTest, AOnePercentSlowerRoundIsWithinTheMargin) {
  Change();

  EXPECT_EQ(Run(100, {.transfer_seconds = 0.325}).verdict, Verdict::kKept);
}

TEST_F(ChangeTrialTest, ALossThatJumpsIsRegrettedAtOnce) {
  Change();

  const ChangeTrial::Judgement judgement = Run(100, {.transfer_seconds = 0.1, .factor = 1.6});
  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_TRUE(judgement.undo);
  EXPECT_LE(rounds_of_trial_, 4 + ChangeTrial::kRoundsOfChange);
}

TEST_F(ChangeTrialTest, ALossThatStandsStillIsRegrettedWhereItFellBefore) {
  Change();

  const ChangeTrial::Judgement judgement = Run(100, {.transfer_seconds = 0.3, .power = -0.1});
  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_FALSE(judgement.undo);
}

TEST_F(ChangeTrialTest, ARoundLostToNumbersThatAreNotFiniteIsRegretted) {
  Change();
  Run(5, {});

  const ChangeTrial::Judgement judgement = Run(1, {.nonfinite_members = 1});
  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_TRUE(judgement.undo);
}

TEST_F(ChangeTrialTest, SuchRoundsAreNoReasonWhereTheyCameBeforeToo) {
  Run(1, {.nonfinite_members = 1});
  Change();
  Run(5, {});

  EXPECT_EQ(Run(1, {.nonfinite_members = 1}).verdict, Verdict::kOpen);
}

}  // namespace
}  // namespace tactus::policies
