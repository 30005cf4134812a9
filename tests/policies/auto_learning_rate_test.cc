#include "policies/auto_learning_rate.h"

#include <gtest/gtest.h>

#include "policies/compatibility.h"

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
        plan.learning_rate_rule = RuleFor(plan, optimizer);
        EXPECT_TRUE(Allowed(plan, optimizer)) << optimizer;
      }
    }
  }
}

TEST(AutoLearningRateTest, AdascaleWhereGradientsAreAveragedForSgd) {
  const Plan every = PlanWith(Synchronization::kEveryStep, Aggregation::kAverage);
  const Plan delayed = PlanWith(Synchronization::kDelayed, Aggregation::kAverage);

  EXPECT_EQ(RuleFor(every, "sgd"), LearningRateRule::kAdascale);
  EXPECT_EQ(RuleFor(delayed, "sgd"), LearningRateRule::kAdascale);
  EXPECT_EQ(RuleFor(every, "adam"), LearningRateRule::kSqrt);
  EXPECT_EQ(RuleFor(delayed, "lamb"), LearningRateRule::kSqrt);
}

TEST(AutoLearningRateTest, ConstantForLocalStepsAndForAdasum) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    EXPECT_EQ(RuleFor(PlanWith(Synchronization::kPeriodic, Aggregation::kAverage), optimizer),
              LearningRateRule::kConstant);
    EXPECT_EQ(RuleFor(PlanWith(Synchronization::kEveryStep, Aggregation::kAdasum), optimizer),
              LearningRateRule::kConstant);
  }
}

TEST(AutoLearningRateTest, FollowsThePlanAndSaysWhy) {
  const AutoLearningRate policy("sgd");
  Plan plan = PlanWith(Synchronization::kPeriodic, Aggregation::kAverage);
  plan.learning_rate_rule = LearningRateRule::kAdascale;

  EXPECT_FALSE(policy.Follow(plan, Observations()).empty());
  EXPECT_EQ(plan.learning_rate_rule, LearningRateRule::kConstant);
  EXPECT_TRUE(policy.Follow(plan, Observations()).empty()) << "it already suits";
}

}  // namespace
}  // namespace tactus::policies
