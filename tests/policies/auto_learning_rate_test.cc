#include "policies/auto_learning_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "policies/compatibility.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

Plan PlanWith(Synchronization synchronization, Aggregation aggregation) {
  return {.synchronization = synchronization,
          .period = synchronization == Synchronization::kEveryStep ? 1u : 4u,
          .aggregation = aggregation,
          .batch_sizes = {8, 8}};
}

TEST(AutoLearningRateTest, EveryRuleItChoosesIsAllowed) {
  for (const Synchronization synchronization :
       {Synchronization::kEveryStep, Synchronization::kPeriodic, Synchronization::kDelayed}) {
    for (const Aggregation aggregation : {Aggregation::kAverage, Aggregation::kAdasum}) {
      for (const char* optimizer : {"sgd", "adam", "adamw", "lamb"}) {
        Plan plan = PlanWith(synchronization, aggregation);
        // Of the others the plan itself is none.
        if (!Allowed(plan, {.name = optimizer})) continue;
        plan.learning_rate_rule = RuleFor(plan, optimizer);
        EXPECT_TRUE(Allowed(plan, {.name = optimizer})) << optimizer;
      }
    }
  }
}

TEST(AutoLearningRateTest, AGainByTheOptimizerWhateverTheSynchronization) {
  for (const Synchronization synchronization :
       {Synchronization::kEveryStep, Synchronization::kPeriodic, Synchronization::kDelayed}) {
    const Plan plan = PlanWith(synchronization, Aggregation::kAverage);

    EXPECT_EQ(RuleFor(plan, "sgd"), LearningRateRule::kAdascale);
    EXPECT_EQ(RuleFor(plan, "adam"), LearningRateRule::kSqrt);
    EXPECT_EQ(RuleFor(plan, "lamb"), LearningRateRule::kSqrt);
  }
}

TEST(AutoLearningRateTest, NoGainWhereTheSumsHideTheNoise) {
  Plan plan = PlanWith(Synchronization::kEveryStep, Aggregation::kAverage);
  plan.encoding = Encoding::kDq;

  EXPECT_EQ(RuleFor(plan, "sgd"), LearningRateRule::kConstant);
  EXPECT_EQ(RuleFor(plan, "adam"), LearningRateRule::kSqrt);
}

TEST(AutoLearningRateTest, ConstantForAdasum) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    EXPECT_EQ(RuleFor(PlanWith(Synchronization::kEveryStep, Aggregation::kAdasum), optimizer),
              LearningRateRule::kConstant);
  }
}

TEST(AutoLearningRateTest, FollowsThePlanAndSaysWhy) {
  const AutoLearningRate policy("sgd", 32);
  Plan plan = PlanWith(Synchronization::kEveryStep, Aggregation::kAdasum);
  plan.learning_rate_rule = LearningRateRule::kAdascale;

  EXPECT_FALSE(policy.Follow(plan, Observations()).empty());
  EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kConstant);
  EXPECT_TRUE(policy.Follow(plan, Observations()).empty()) << "it already suits";
}

// TwoMembers take 64 samples a step together.
TEST(AutoLearningRateTest, LocalStepsBeginWithConstantWhereTheRuleWouldMakeThemLonger) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    Plan plan = TwoMembers();
    plan.synchronization = Synchronization::kPeriodic;
    plan.period = 8;
    plan.learning_rate_rule = LearningRateRule::kLinear;

    AutoLearningRate(optimizer, 32).Follow(plan, Observations());
    EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kConstant) << optimizer;

    AutoLearningRate(optimizer, 64).Follow(plan, Observations());
    EXPECT_EQ(plan.learning_rate_rule, RuleFor(plan, optimizer)) << optimizer;
  }
}

// TwoMembers take 64 samples a step together.
TEST(AutoLearningRateTest, StepsOfPreconditionedOptimizersBeginWithConstant) {
  for (const char* optimizer : {"adam", "adamw", "lamb"}) {
    Plan plan = TwoMembers();
    plan.learning_rate_rule = LearningRateRule::kSqrt;

    EXPECT_NE(AutoLearningRate(optimizer, 32).Follow(plan, Observations()).find("have yet to be"),
              std::string::npos);
    EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kConstant) << optimizer;

    AutoLearningRate(optimizer, 64).Follow(plan, Observations());
    EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kSqrt)
        << "which is no longer: " << optimizer;
  }
  Plan plan = TwoMembers();
  AutoLearningRate("sgd", 32).Follow(plan, Observations());
  EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kAdascale);
}

// A gain of two, and a loss that stands still: shorter steps are due.
TEST(AutoLearningRateTest, NothingIsTriedWhileAnotherAxisHasSomethingOnTrial) {
  AutoLearningRate policy("sgd", 32);
  Observations seen;
  Plan plan = TwoMembers();
  plan.learning_rate_rule = LearningRateRule::kAdascale;
  seen.Start({.members = 2});
  seen.Expect(plan);
  const std::function<std::optional<Plan>(const Plan&)> complete = [](const Plan& whole) {
    return std::optional(whole);
  };
  Plan first = plan;
  policy.Start(first, seen);
  const auto run = [&](std::uint64_t from, bool other_on_trial) {
    std::optional<Proposal> proposal;
    for (std::uint64_t round = from; round < from + 100 && !proposal; ++round) {
      ObserveRounds(seen, plan, {.first = round}, {.loss = 1 + 0.001 * (round % 3), .gain = 2});
      proposal = policy.Decide(
          {.in_force = plan, .seen = seen, .complete = complete, .other_on_trial = other_on_trial});
    }
    return proposal;
  };

  EXPECT_FALSE(run(0, true).has_value());
  EXPECT_FALSE(policy.OnTrial());
  // The least of a canary, 40 rounds, would be more than its share of the time.
  EXPECT_FALSE(run(100, false).has_value());
  EXPECT_FALSE(run(200, true).has_value());
  const std::optional<Proposal> proposal = run(300, false);
  ASSERT_TRUE(proposal.has_value());
  EXPECT_EQ(proposal->plan.learning_rate_rule, LearningRateRule::kConstant);
  EXPECT_EQ(proposal->trial, Trial::kBegins);
  EXPECT_TRUE(policy.OnTrial());
}

// ---- How long steps are, by the loss

VirtualJobOptions Job(double variance, const SynchronizationOptions& synchronization) {
  VirtualJobOptions options{
      .workers = {{.speed = 400}, {.speed = 400}, {.speed = 400}, {.speed = 400}},
      .transfer_seconds = 0.02};
  options.planner.synchronization = synchronization;
  options.planner.learning_rate_policy = "auto";
  options.loss.variance = variance;
  return options;
}

VirtualJobOptions Windows(double variance) {
  VirtualJobOptions options = Job(variance, {.policy = "periodic", .period = 16});
  options.transfer_seconds = 0.2;
  return options;
}

double LossUnder(const char* policy, VirtualJobOptions options, double seconds) {
  options.planner.learning_rate_policy = policy;
  VirtualJob job(options);
  job.RunUntil(seconds);
  return job.loss();
}

// Noise holds the loss up: shorter steps lead lower, and stay.
TEST(AutoLearningRateLoopTest, WhereTheLossStandsStillShorterStepsAreTriedAndStay) {
  const VirtualJobOptions options = Job(1000, {.policy = "every_step"});
  VirtualJob job(options);
  job.RunUntil(400);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kLearningRate);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions.front().to, "constant");
  EXPECT_LT(job.loss(), 0.7 * LossUnder("adascale", options, 400));
}

TEST(AutoLearningRateLoopTest, WhereTheLossFallsTheRuleStays) {
  VirtualJob job(Job(1, {.policy = "every_step"}));

  job.RunUntil(60);

  EXPECT_EQ(job.plan().learning_rate_rule, LearningRateRule::kAdascale);
}

TEST(AutoLearningRateLoopTest, LocalStepsBeginShort) {
  VirtualJob job(Windows(1000));

  job.Run(3);

  EXPECT_EQ(job.plan().learning_rate_rule, LearningRateRule::kConstant);
}

// The loss still falls, and longer steps bring it lower.
TEST(AutoLearningRateLoopTest, LongerLocalStepsAreTriedAndStayWhereTheyPay) {
  const VirtualJobOptions options = Windows(30);
  VirtualJob job(options);
  job.RunUntil(200);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kLearningRate);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions.front().to, "adascale");
  EXPECT_EQ(job.plan().learning_rate_rule, LearningRateRule::kAdascale);
  EXPECT_LT(job.loss(), LossUnder("constant", options, 200));
}

// Each further local step makes all of them noisier, by as much again: a window is taken back whole
// where it led up.
TEST(AutoLearningRateLoopTest, LongerLocalStepsThatLeadUpAreUndone) {
  VirtualJobOptions options = Windows(1000);
  options.loss.drift = 1;
  VirtualJob job(options);
  job.RunUntil(400);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kLearningRate);
  ASSERT_GE(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].to, "adascale");
  EXPECT_EQ(decisions[1].to, "constant");
  const auto undone = std::ranges::find(job.plans(), Trial::kUndone, &Plan::trial);
  ASSERT_NE(undone, job.plans().end());
  EXPECT_EQ(undone->version, decisions[1].plan_version);
  EXPECT_LT(job.loss(), 1.05 * LossUnder("constant", options, 400));
}

// All on trial together, over hours: a twentieth of the time, and what is in doubt three.
TEST(AutoLearningRateLoopTest, WhatIsTriedOutTakesLittleOfTheTime) {
  VirtualJob job(Windows(1000));

  job.RunUntil(3000);

  EXPECT_LT(job.DecisionsOf(Axis::kLearningRate).size(), 24u);
}

}  // namespace
}  // namespace tactus::policies
