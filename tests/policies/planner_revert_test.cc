// What the planner does with decisions that a user takes back, and with what is frozen.

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/planner.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

// A group of two at 64 and 16 samples/s with a transfer of 0.5 s, seen for some rounds under a
// plan of version 2.
class PlannerRevertTest : public testing::Test {
 protected:
  PlannerRevertTest() { plan_.version = 2; }

  void See(Planner& planner, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const Report& report : ReportsOf(plan_, round_, facts_)) planner.Observe(report);
      ++round_;
    }
  }
  void Resume(Planner& planner) {
    planner.Resume(plan_, {});
    See(planner, 6);
  }

  Plan plan_ = TwoMembers();
  RoundFacts facts_{.speeds = {64, 16}, .transfer_seconds = 0.5};
  std::uint64_t round_ = 10;
};

// From the wish on, whether its plan can be made or not.
TEST_F(PlannerRevertTest, WhatIsFrozenStays) {
  Planner planner({});
  Resume(planner);
  planner.Freeze(Axis::kBatch);

  for (int round = 0; round < 20; ++round) {
    See(planner, 1);
    EXPECT_FALSE(planner.Decide(plan_, {}).has_value());
  }

  Planner free({});
  round_ = 10;
  Resume(free);
  bool moved = false;
  for (int round = 0; round < 20 && !moved; ++round) {
    See(free, 1);
    moved = free.Decide(plan_, {}).has_value();
  }
  EXPECT_TRUE(moved) << "shares of 32,32 do not suit speeds of 64 and 16";
}

TEST_F(PlannerRevertTest, TheSizesBeforeComeBackWithAPromiseAndAReason) {
  Planner planner({});
  plan_.batch_sizes = {52, 12};
  Resume(planner);
  const Decision decision{.plan_version = 2,
                          .axis = Axis::kBatch,
                          .from = "32,32",
                          .to = "52,12",
                          .metric = "samples/s"};

  const std::optional<Revision> revision = planner.Revert(plan_, decision);

  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->plan.version, 3u);
  EXPECT_EQ(revision->plan.batch_sizes, (std::vector<std::uint32_t>{32, 32}));
  ASSERT_EQ(revision->decisions.size(), 1u);
  const Decision& made = revision->decisions.front();
  EXPECT_EQ(made.axis, Axis::kBatch);
  EXPECT_EQ(made.from, "52,12");
  EXPECT_EQ(made.to, "32,32");
  EXPECT_EQ(made.metric, "samples/s");
  // 64 samples in 0.8125 + 0.5 s, then in 2 + 0.5 s.
  EXPECT_NEAR(made.predicted_gain, 1.3125 / 2.5 - 1, 1e-9);
  EXPECT_EQ(made.reason,
            "reverted by a request: decision 2-batch, which went to 52,12, is taken back, and it "
            "stays so until it is set free");
  EXPECT_EQ(revision->plan.reason, made.reason);
}

TEST_F(PlannerRevertTest, WhatItBroughtIsMeasuredAndTheAxisStays) {
  Planner planner({});
  plan_.batch_sizes = {52, 12};
  Resume(planner);
  const std::optional<Revision> revision = planner.Revert(
      plan_, {.plan_version = 2, .axis = Axis::kBatch, .from = "32,32", .metric = "samples/s"});
  ASSERT_TRUE(revision.has_value());
  plan_ = revision->plan;

  std::vector<Decision> measured;
  for (int i = 0; i < 40; ++i) {
    See(planner, 1);
    EXPECT_FALSE(planner.Decide(plan_, {}).has_value());
    for (Decision& decision : planner.TakeMeasured()) measured.push_back(std::move(decision));
  }

  ASSERT_EQ(measured.size(), 1u);
  // Of rounds of 2.5 s, 2 - 0.8125 s would have been saved.
  EXPECT_NEAR(measured[0].measured_gain.value_or(0), -1.1875 / 2.5, 1e-9);
}

TEST_F(PlannerRevertTest, WithoutBeingRevertedTheSharesWouldFollowTheSpeeds) {
  Planner planner({});
  Resume(planner);

  EXPECT_TRUE(planner.Decide(plan_, {}).has_value());
}

TEST_F(PlannerRevertTest, DelayedRoundsHaveTheJobsBoundOnTheirStepsAgain) {
  Planner planner({.synchronization = {.policy = "auto", .steps_max = 64}});
  Resume(planner);

  const Undoing undoing = planner.Undo(plan_, {.axis = Axis::kSynchronization, .from = "delayed"});

  ASSERT_TRUE(undoing.revision.has_value()) << undoing.refusal;
  EXPECT_EQ(undoing.revision->plan.synchronization, Synchronization::kDelayed);
  EXPECT_EQ(undoing.revision->plan.period, 64u);
}

// The rate goes back to what the rules allow beside Adasum.
TEST_F(PlannerRevertTest, OtherAxesFollowWithReasonsOfTheirOwn) {
  Planner planner({.aggregation_policy = "auto", .learning_rate_policy = "auto"});
  plan_.learning_rate_rule = LearningRateRule::kAdascale;
  Resume(planner);

  const std::optional<Revision> revision =
      planner.Revert(plan_, {.axis = Axis::kAggregation, .from = "adasum"});

  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->plan.aggregation, Aggregation::kAdasum);
  EXPECT_EQ(revision->plan.learning_rate_rule, LearningRateRule::kConstant);
  ASSERT_EQ(revision->decisions.size(), 2u);
  for (const Decision& decision : revision->decisions) {
    EXPECT_EQ(decision.reason.starts_with("reverted"), decision.axis == Axis::kAggregation);
  }
}

TEST_F(PlannerRevertTest, WhatCannotBeIsRefusedWithItsReason) {
  Planner planner({.synchronization = {.policy = "auto"}});
  plan_.synchronization = Synchronization::kPeriodic;
  plan_.period = 8;
  plan_.aggregation = Aggregation::kAdasum;
  Resume(planner);
  const auto refusal = [&](Axis axis, const std::string& from) {
    const Undoing undoing = planner.Undo(plan_, {.axis = axis, .from = from});
    EXPECT_FALSE(undoing.revision.has_value()) << from;
    return undoing.refusal;
  };

  EXPECT_EQ(refusal(Axis::kSynchronization, "periodic 8"),
            "the synchronization is periodic 8 already");
  EXPECT_EQ(refusal(Axis::kBatch, "8,8,8"),
            "no group can run what would come of it: 3 batch sizes, and the group has 2 members");
  EXPECT_EQ(refusal(Axis::kBatch, "9000000,9000000"),
            "no group can run what would come of it: a round of periodic 1 with batch sizes of "
            "9000000,9000000, allowed are 1 to 16777216 samples a round");
  const std::string conflict = refusal(Axis::kLearningRate, "adascale");
  EXPECT_TRUE(conflict.starts_with(
      "no group can run what would come of it: adapt.learning_rate.policy: found adascale, which "
      "does not go with adapt.aggregation.policy adasum: "))
      << conflict;
  EXPECT_EQ(refusal(Axis::kSynchronization, "sometimes"),
            "the value before it is not known here: sometimes");
}

TEST_F(PlannerRevertTest, WhileNothingIsMeasuredNothingIsPromised) {
  Planner planner({.synchronization = {.policy = "auto"}});
  planner.Resume(plan_, {});

  const Undoing undoing =
      planner.Undo(plan_, {.axis = Axis::kSynchronization, .from = "periodic 4"});

  ASSERT_TRUE(undoing.revision.has_value()) << undoing.refusal;
  EXPECT_EQ(undoing.revision->decisions.front().metric, "");
  EXPECT_FALSE(planner.Measured(plan_).has_value());
}

TEST_F(PlannerRevertTest, AGroupIsMeasuredWhenItsSpeedsAndItsTransferAre) {
  Planner planner({.base_batch = 48});
  Resume(planner);

  const std::optional<MeasuredGroup> group = planner.Measured(plan_);

  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->plan, plan_);
  EXPECT_NEAR(group->speeds[1], 16, 1e-6);
  EXPECT_NEAR(group->transfer_seconds, 0.5, 1e-9);
  EXPECT_EQ(group->worth.base_batch, 48);
}

// ---- What is frozen

Plan Before() {
  return {.version = 9,
          .synchronization = Synchronization::kPeriodic,
          .period = 16,
          .batch_sizes = {20, 44}};
}

TEST(PlannerFrozenTest, ANewGroupGoesOnWithWhatIsFrozenAndNothingElse) {
  PlannerOptions options{.synchronization = {.policy = "auto"}};
  options.frozen = {Axis::kSynchronization};

  const Revision first = Planner(options).Start({.members = 2, .before = Before()});

  EXPECT_EQ(first.plan.period, 16u);
  EXPECT_EQ(first.plan.batch_sizes, (std::vector<std::uint32_t>{32, 32}));
  EXPECT_EQ(first.decisions[1].reason, "the synchronization is frozen and stays as it was");
  options.frozen = {};
  EXPECT_EQ(Planner(options).Start({.members = 2, .before = Before()}).plan.period, 1u);
}

TEST(PlannerFrozenTest, SizesOfOtherMembersAreNotGoneOnWith) {
  PlannerOptions options;
  options.frozen = {Axis::kBatch};
  Plan others = Before();
  others.batch_sizes.clear();

  EXPECT_EQ(Planner(options).Start({.members = 2, .before = Before()}).plan.batch_sizes,
            (std::vector<std::uint32_t>{20, 44}));
  EXPECT_EQ(Planner(options).Start({.members = 2, .before = others}).plan.batch_sizes,
            (std::vector<std::uint32_t>{32, 32}));
}

TEST(PlannerFrozenTest, OneMemberHasNobodyToExchangeWith) {
  PlannerOptions options{.synchronization = {.policy = "auto"}};
  options.frozen = {Axis::kSynchronization};

  EXPECT_EQ(Planner(options).Start({.members = 1, .before = Before()}).plan.period, 1u);
}

TEST(PlannerFrozenTest, WhatDoesNotGoWithTheNewSettingsGivesWay) {
  PlannerOptions options{.aggregation_policy = "auto", .learning_rate_policy = "adascale"};
  options.frozen = {Axis::kAggregation};
  Plan before = Before();
  before.aggregation = Aggregation::kAdasum;

  EXPECT_EQ(Planner(options).Start({.members = 2, .before = before}).plan.aggregation,
            Aggregation::kAverage);
}

TEST(PlannerFrozenTest, AFrozenAxisKeepsNoOtherFromMoving) {
  VirtualJobOptions options{.workers = {{.speed = 100}, {.speed = 100}}, .transfer_seconds = 3};
  options.planner.synchronization.policy = "auto";
  options.planner.learning_rate_policy = "auto";
  options.planner.frozen = {Axis::kLearningRate};
  VirtualJob job(options);
  ASSERT_EQ(job.plan().learning_rate_rule, LearningRateRule::kAdascale);

  job.Run(60);

  EXPECT_NE(job.plan().synchronization, Synchronization::kEveryStep);
  for (const Plan& plan : job.plans()) {
    EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kAdascale);
  }
}

}  // namespace
}  // namespace tactus::policies
