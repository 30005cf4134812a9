#include "policies/prior_trial.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

using Verdict = ChangeTrial::Verdict;

class PriorTrialTest : public testing::Test {
 protected:
  PriorTrialTest() {
    plan_.synchronization = Synchronization::kPeriodic;
    plan_.period = 8;
    seen_->Start({.members = 2});
    seen_->Expect(plan_);
  }

  ChangeTrial::Judgement Round(const RoundFacts& facts) {
    ObserveRounds(*seen_, plan_, {.first = round_++}, facts);
    return JudgePrior({.period = 8, .transfer_seconds = 0.1}, *seen_, 0);
  }

  Plan plan_ = TwoMembers();
  std::optional<Observations> seen_{std::in_place};
  std::uint64_t round_ = 0;
};

TEST_F(PriorTrialTest, ItIsOpenBeforeTheFirstRound) {
  EXPECT_EQ(JudgePrior({}, *seen_, 0).verdict, Verdict::kOpen);
}

TEST_F(PriorTrialTest, ThreeGoodRoundsKeepIt) {
  EXPECT_EQ(Round({}).verdict, Verdict::kOpen);
  EXPECT_EQ(Round({}).verdict, Verdict::kOpen);
  EXPECT_EQ(Round({}).verdict, Verdict::kKept);
}

TEST_F(PriorTrialTest, ARoundThatIsLostEndsItAtOnce) {
  const ChangeTrial::Judgement judgement = Round({.nonfinite_members = 1});

  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_EQ(judgement.reason, "numbers were not finite");
  EXPECT_TRUE(judgement.undo);
}

TEST_F(PriorTrialTest, ALossThatRisesByMoreThanAQuarterEndsItAtOnce) {
  EXPECT_EQ(Round({.loss = 2}).verdict, Verdict::kOpen);
  const ChangeTrial::Judgement judgement = Round({.loss = 2.6});

  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_EQ(judgement.reason, "the loss rose from 2.00 to 2.60");
  EXPECT_TRUE(judgement.undo);
}

TEST_F(PriorTrialTest, ALossThatRisesByLessIsNoise) {
  Round({.loss = 2});
  Round({.loss = 2.4});

  EXPECT_EQ(Round({.loss = 2.4}).verdict, Verdict::kKept);
}

TEST_F(PriorTrialTest, AFasterNetworkEndsItAtOnce) {
  const ChangeTrial::Judgement judgement = Round({.transfer_seconds = 0.049});

  EXPECT_EQ(judgement.verdict, Verdict::kRegretted);
  EXPECT_EQ(judgement.reason, "a transfer takes 0.0490 s, and 0.10 s were expected");
  EXPECT_FALSE(judgement.undo);
}

TEST_F(PriorTrialTest, ASlowerNetworkEndsItOnceItIsMeasured) {
  EXPECT_EQ(Round({.transfer_seconds = 0.3}).verdict, Verdict::kOpen);
  EXPECT_EQ(Round({.transfer_seconds = 0.3}).verdict, Verdict::kOpen);
  EXPECT_EQ(Round({.transfer_seconds = 0.3}).verdict, Verdict::kRegretted);
}

TEST_F(PriorTrialTest, ATransferThatIsHalfOrTwiceAsLongIsTheSameNetwork) {
  for (const double transfer : {0.19, 0.051}) {
    seen_.emplace();
    seen_->Start({.members = 2});
    seen_->Expect(plan_);
    Round({.transfer_seconds = transfer});
    Round({.transfer_seconds = transfer});
    EXPECT_EQ(Round({.transfer_seconds = transfer}).verdict, Verdict::kKept) << transfer;
  }
}

}  // namespace
}  // namespace tactus::policies
