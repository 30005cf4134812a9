// The planner as its caller sees it: first plans, changes of several axes at once, measured gains.

#include "policies/planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/catalogue.h"
#include "policies/compatibility.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

PlannerOptions With(const SynchronizationOptions& synchronization) {
  return {.synchronization = synchronization};
}

TEST(PlannerTest, AFirstPlanExplainsEveryAxis) {
  Planner planner({});

  const Revision first = planner.Start({.members = 3});

  EXPECT_EQ(first.plan.batch_sizes, (std::vector<std::uint32_t>{32, 32, 32}));
  EXPECT_EQ(first.plan.reason, "equal shares until speeds are measured");
  ASSERT_EQ(first.decisions.size(), kAxes.size());
  for (const Decision& decision : first.decisions) {
    EXPECT_TRUE(decision.from.empty());
    EXPECT_FALSE(decision.to.empty());
    EXPECT_FALSE(decision.reason.empty());
  }
}

TEST(PlannerTest, FixedSynchronizationsStartAsTheJobAsks) {
  EXPECT_EQ(Planner(With({.policy = "periodic", .period = 8})).Start({.members = 2}).plan.period,
            8u);
  const Plan delayed =
      Planner(With({.policy = "delayed", .steps_max = 64})).Start({.members = 2}).plan;
  EXPECT_EQ(delayed.synchronization, Synchronization::kDelayed);
  EXPECT_EQ(delayed.period, 64u);
}

TEST(PlannerTest, AMemberAloneRunsEveryStepUnderEveryPolicy) {
  for (const Policy& policy : PoliciesOf(Axis::kSynchronization)) {
    const std::string name(policy.name);
    VirtualJobOptions options{.workers = {{.speed = 100}}, .noise = 0.05};
    options.planner.synchronization = {.policy = name, .period = 8};
    VirtualJob job(options);

    job.Run(100);

    EXPECT_EQ(job.plan().synchronization, Synchronization::kEveryStep) << name;
    EXPECT_TRUE(job.DecisionsOf(Axis::kSynchronization).empty()) << name;
  }
}

// Whose members are several, where it is a mesh.
TEST(PlannerTest, AReplicaAloneRunsEveryStepUntilAnotherJoinsIt) {
  for (const char* name : {"periodic", "adacomm"}) {
    PlannerOptions options = With({.policy = name, .period = 8});
    options.batch.replica_members = 2;
    options.mesh = "1d";
    Planner planner(options);

    const Plan two = planner.Start({.members = 4}).plan;
    EXPECT_EQ(two.period, 8u) << name;
    const Plan alone = planner.Start({.members = 2, .before = two, .goes_on = true}).plan;
    EXPECT_EQ(alone.synchronization, Synchronization::kEveryStep) << name;
    const Plan again = planner.Start({.members = 4, .before = alone, .goes_on = true}).plan;
    EXPECT_EQ(again.period, 8u) << name;
  }
}

// It takes single steps, which Adasum has for sgd without momentum alone where members have parts.
TEST(PlannerTest, AReplicaAloneHasNoAdasumUntilAnotherJoinsIt) {
  PlannerOptions options = With({.policy = "periodic", .period = 8});
  options.batch.replica_members = 2;
  options.mesh = "1d";
  options.momentum = 0.9;
  options.aggregation_policy = "adasum";
  Planner planner(options);

  const Plan two = planner.Start({.members = 4}).plan;
  EXPECT_EQ(two.aggregation, Aggregation::kAdasum);
  const Plan alone = planner.Start({.members = 2, .before = two, .goes_on = true}).plan;
  EXPECT_EQ(alone.aggregation, Aggregation::kAverage);
  const Plan again = planner.Start({.members = 4, .before = alone, .goes_on = true}).plan;
  EXPECT_EQ(again.aggregation, Aggregation::kAdasum);
}

TEST(PlannerTest, UnequalWorkersGetSharesAndThePromiseIsMeasured) {
  VirtualJob job({.workers = {{.speed = 100}, {.speed = 25}}, .transfer_seconds = 0.2});

  job.Run(40);

  ASSERT_FALSE(job.decisions().empty());
  const Decision& decision = job.decisions().front();
  EXPECT_EQ(decision.axis, Axis::kBatch);
  EXPECT_EQ(decision.from, "32,32");
  EXPECT_EQ(decision.to, "52,12");
  EXPECT_EQ(decision.plan_version, 2u);
  EXPECT_EQ(decision.metric, "samples/s");
  // 64 samples in 1.28 + 0.2 s before, in 0.52 + 0.2 s after. Of one stretch, whose noise nobody
  // knows yet, 6 x 0.02 / 0.59 of the fall of 0.59 are doubted.
  EXPECT_NEAR(decision.predicted_gain, 1.48 / (1.48 - (0.59 - 0.20) * 1.28) - 1, 0.02);
  ASSERT_FALSE(job.measured().empty());
  EXPECT_NEAR(job.measured().front().measured_gain.value_or(0), 1.48 / 0.72 - 1, 1e-3);
}

TEST(PlannerTest, ADecisionKnowsItsRoundAndTheTrainingTime) {
  VirtualJob job({.workers = {{.speed = 32}, {.speed = 8}}, .transfer_seconds = 1});

  job.Run(6);

  ASSERT_FALSE(job.decisions().empty());
  EXPECT_EQ(job.decisions().front().round, 1u);
  EXPECT_NEAR(job.decisions().front().seconds, 2 * (4 + 1), 1e-9);
}

// What local steps would gain is tried out first (decision 57); of one batch for all they gain
// nothing, and the rule stays.
TEST(PlannerTest, TheRateOfLocalStepsIsThatOfTheBaseBatch) {
  VirtualJobOptions options{.workers = {{.speed = 100}, {.speed = 100}}, .transfer_seconds = 3};
  options.planner.synchronization.policy = "auto";
  options.planner.learning_rate_policy = "auto";
  options.planner.momentum = 0.9;  // leaves periodic alone
  for (const std::uint32_t base : {32u, 64u}) {
    options.planner.base_batch = base;
    VirtualJob job(options);

    job.Run(10);

    ASSERT_EQ(job.plan().synchronization, Synchronization::kPeriodic);
    for (const Plan& plan : job.plans()) {
      const bool gains = base < 64 && plan.synchronization == Synchronization::kPeriodic;
      EXPECT_EQ(plan.learning_rate_rule,
                gains ? LearningRateRule::kConstant : LearningRateRule::kAdascale);
    }
  }
}

TEST(PlannerTest, AFixedLearningRateKeepsAutoFromWhatItForbids) {
  VirtualJobOptions options{.workers = {{.speed = 100}, {.speed = 100}}};
  options.loss.variance = 1000;  // gradients differ, which asks for adasum
  options.planner.aggregation_policy = "auto";
  options.planner.learning_rate_policy = "adascale";
  VirtualJob job(options);

  job.Run(300);

  for (const Plan& plan : job.plans()) {
    EXPECT_EQ(plan.aggregation, Aggregation::kAverage);
    EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kAdascale);
  }
}

TEST(PlannerTest, AfterAResumeItGoesOnUnderThePlanInForce) {
  Planner planner(With({.policy = "adacomm", .period = 20, .interval_seconds = 10}));
  Plan plan = TwoMembers();
  plan.version = 7;
  plan.synchronization = Synchronization::kPeriodic;
  plan.period = 9;

  planner.Resume(plan, {});
  std::optional<Revision> revision;
  for (std::uint64_t round = 100; round < 120 && !revision; ++round) {
    for (const Report& report : ReportsOf(plan, round, {})) planner.Observe(report);
    revision = planner.Decide(plan, {});
  }

  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->plan.version, 8u);
  EXPECT_EQ(revision->plan.period, 5u) << "half of 9, as the loss stands still";
}

TEST(PlannerTest, APlanOfAnotherGroupIsLeftAlone) {
  Planner planner({});
  planner.Start({.members = 2});

  EXPECT_FALSE(planner.Decide({.version = 1, .batch_sizes = {1, 2, 3}}, {}).has_value());
}

TEST(PlannerTest, WhoIsLeftOfAGroupGoesOnWithItsPlan) {
  Planner planner(With({.policy = "auto"}));
  planner.Start({.members = 3});
  const Plan before{.version = 7,
                    .synchronization = Synchronization::kPeriodic,
                    .period = 9,
                    .batch_sizes = {40, 20},
                    .trial = Trial::kRuns,
                    .reason = "tried out"};

  const Revision first =
      planner.Start({.members = 2, .speeds = {100, 50}, .before = before, .goes_on = true});

  EXPECT_EQ(first.plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(first.plan.period, 9u);
  EXPECT_EQ(first.plan.batch_sizes, before.batch_sizes);
  EXPECT_EQ(first.plan.trial, Trial::kNone) << "what was on trial is over";
  EXPECT_EQ(first.plan.reason, "the batch goes on as it was in the group before");
  EXPECT_EQ(first.decisions.size(), kAxes.size());
}

TEST(PlannerTest, WhoJoinsAGroupHasItsShareOfThePlanThatGoesOn) {
  Planner planner(With({.policy = "auto"}));
  planner.Start({.members = 2});
  Plan before{.version = 7,
              .synchronization = Synchronization::kPeriodic,
              .period = 9,
              .batch_sizes = {40, 20},
              .reason = "found"};
  const StartingGroup group{
      .members = 3, .speeds = {100, 50, 50}, .before = before, .goes_on = true};

  const Plan more = planner.Start(group).plan;

  EXPECT_EQ(more.period, 9u);
  EXPECT_EQ(more.batch_sizes, (std::vector<std::uint32_t>{48, 24, 24})) << "32 more, by speed";

  before.batch_sizes = {200, 184};
  StartingGroup larger = group;
  larger.before = before;

  EXPECT_EQ(planner.Start(larger).plan.batch_sizes, (std::vector<std::uint32_t>{192, 96, 96}))
      << "no less than they had";
}

TEST(PlannerTest, WhoWasAloneIsNoGuessForTwo) {
  Planner planner(With({.policy = "periodic", .period = 8}));
  const Plan alone = planner.Start({.members = 1}).plan;

  const Plan plan = planner.Start({.members = 2, .before = alone, .goes_on = true}).plan;

  EXPECT_EQ(plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(plan.period, 8u);
}

TEST(PlannerTest, WhoIsLeftAloneRunsWhatOneMemberCan) {
  Planner planner(With({.policy = "periodic", .period = 8}));
  const Plan before = planner.Start({.members = 2}).plan;
  Plan alone = before;
  alone.batch_sizes = {32};

  const Plan plan = planner.Start({.members = 1, .before = alone, .goes_on = true}).plan;

  EXPECT_EQ(plan.synchronization, Synchronization::kEveryStep);
  EXPECT_EQ(plan.period, 1u);
}

TEST(PlannerTest, PeriodsFollowABatchThatLeavesThemNoRoom) {
  PlannerOptions options{.batch = {.per_worker = 1u << 20}};
  options.synchronization = {.policy = "periodic", .period = 64};
  Planner planner(options);

  const Plan plan = planner.Start({.members = 4}).plan;

  EXPECT_TRUE(Fits(plan, 4));
  EXPECT_EQ(plan.period, 4u);
}

// It would end the coordinator, at each of its starts.
TEST(PlannerTest, AJobOnRecordWhoseChoicesAreRefusedByNowTakesAverages) {
  PlannerOptions options = With({.policy = "delayed"});
  options.aggregation_policy = "adasum";
  options.momentum = 0.9;

  const Revision first = Planner(options).Start({.members = 4});

  EXPECT_EQ(first.plan.synchronization, Synchronization::kDelayed);
  EXPECT_EQ(first.plan.aggregation, Aggregation::kAverage);
}

}  // namespace
}  // namespace tactus::policies
