#include "policies/axis_policy.h"

#include <gtest/gtest.h>

#include "policies/figures.h"

namespace tactus::policies {
namespace {

TEST(AxisPolicyTest, ValuesAreAsAPersonSaysThem) {
  Plan plan{.period = 1, .batch_sizes = {64, 32, 8}};
  EXPECT_EQ(ValueOf(plan, Axis::kBatch), "64 32 8");
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "every_step");
  EXPECT_EQ(ValueOf(plan, Axis::kAggregation), "average");
  EXPECT_EQ(ValueOf(plan, Axis::kLearningRate), "constant");

  plan.synchronization = Synchronization::kPeriodic;
  plan.period = 16;
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "periodic 16");

  plan.synchronization = Synchronization::kDelayed;
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "delayed");
}

TEST(AxisPolicyTest, ASynchronizedPlanAlwaysFits) {
  Plan plan{.batch_sizes = {4096, 4096}};

  Synchronize(plan, Synchronization::kPeriodic, 1'000'000);
  EXPECT_EQ(plan.period, kRoundSamplesMax / 8192);
  EXPECT_TRUE(Fits(plan, 2));

  Synchronize(plan, Synchronization::kDelayed, 0);
  EXPECT_EQ(plan.period, 1u);
  EXPECT_TRUE(Fits(plan, 2));

  Synchronize(plan, Synchronization::kEveryStep, 12);
  EXPECT_EQ(plan.period, 1u);
  EXPECT_TRUE(Fits(plan, 2));
}

TEST(FiguresTest, ThreeDigitsOrSo) {
  EXPECT_EQ(Figure(402.4), "402");
  EXPECT_EQ(Figure(41.26), "41.3");
  EXPECT_EQ(Figure(-0.174), "-0.17");
  EXPECT_EQ(Figure(0.00423), "0.0042");
  EXPECT_EQ(Percent(0.125), "12.5 %");
}

}  // namespace
}  // namespace tactus::policies
