#include "policies/axes.h"

#include <gtest/gtest.h>

#include "policies/axis_policy.h"
#include "policies/figures.h"

namespace tactus::policies {
namespace {

TEST(AxesTest, AreNamedAsAJobFileAndAPersonNameThem) {
  EXPECT_EQ(FieldOf(Axis::kLearningRate), "learning_rate");
  EXPECT_EQ(NameOf(Axis::kLearningRate), "learning rate");
  EXPECT_EQ(kAxes.front(), Axis::kBatch);
  EXPECT_EQ(kAxes.back(), Axis::kEncoding);
}

TEST(AxesTest, APlanAsAListTellsEveryFieldThatSaysHowRoundsRun) {
  const Plan plan = {.version = 7,
                     .synchronization = Synchronization::kPeriodic,
                     .period = 16,
                     .aggregation = Aggregation::kAdasum,
                     .learning_rate_rule = LearningRateRule::kSqrt,
                     .encoding = Encoding::kBfloat16,
                     .batch_sizes = {64, 32},
                     .reason = "as the job asks"};

  std::string text;
  for (const PlanRow& row : RowsOf(plan)) {
    text += std::string(row.name) + " (" + std::string(row.label) + ") " + TextOf(row.value) + "\n";
  }

  EXPECT_EQ(text,
            "batch_sizes (batch sizes) 64,32\n"
            "synchronization (synchronization) periodic\n"
            "period (period) 16\n"
            "aggregation (aggregation) adasum\n"
            "learning_rate_rule (learning rate) sqrt\n"
            "encoding (encoding) bfloat16\n");
  EXPECT_EQ(ChoicesOf(RowsOf(plan)),
            (std::vector<std::string>{"periodic 16", "adasum", "sqrt", "bfloat16"}));
  EXPECT_EQ(ChoicesOf(RowsOf({})),
            (std::vector<std::string>{"every_step", "average", "constant", "dense"}));
}

TEST(AxisPolicyTest, ValuesAreAsAPersonSaysThem) {
  Plan plan{.period = 1, .batch_sizes = {64, 32, 8}};
  EXPECT_EQ(ValueOf(plan, Axis::kBatch), "64,32,8");
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "every_step");
  EXPECT_EQ(ValueOf(plan, Axis::kAggregation), "average");
  EXPECT_EQ(ValueOf(plan, Axis::kLearningRate), "constant");
  EXPECT_EQ(ValueOf(plan, Axis::kEncoding), "dense");

  plan.synchronization = Synchronization::kPeriodic;
  plan.period = 16;
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "periodic 16");

  plan.synchronization = Synchronization::kDelayed;
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "delayed");

  plan.synchronization = Synchronization::kDecentlam;
  plan.graph = Topology::kRing;
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "decentlam ring");
  plan.circle = {0, 2, 1};
  EXPECT_EQ(ValueOf(plan, Axis::kSynchronization), "decentlam ring 0,2,1");
}

TEST(AxesTest, AGraphIsReadBackWithItsCircle) {
  const Plan plan{.synchronization = Synchronization::kDecentlam,
                  .batch_sizes = {1, 1, 1},
                  .graph = Topology::kOnePeerExponential,
                  .circle = {2, 0, 1}};
  const Plan before{
      .synchronization = Synchronization::kPeriodic, .period = 9, .batch_sizes = {1, 1, 1}};
  constexpr Axis kAxis = Axis::kSynchronization;

  const std::optional<Plan> read = WithValue(before, kAxis, ValueOf(plan, kAxis));

  ASSERT_TRUE(read);
  EXPECT_EQ(*read, plan);
  EXPECT_FALSE(WithValue(*read, kAxis, "periodic 4")->graph);
  EXPECT_TRUE(WithValue(*read, kAxis, "decentlam ring")->circle.empty());
  for (const char* text : {"decentlam", "decentlam square", "decentlam ring x", "decentlam ring ",
                           "decentlam ring 1,2 3", "every_step ring"}) {
    EXPECT_FALSE(WithValue(plan, kAxis, text)) << text;
  }
}

TEST(AxesTest, ValuesAreReadBack) {
  const Plan plan{.synchronization = Synchronization::kPeriodic,
                  .period = 16,
                  .aggregation = Aggregation::kAdasum,
                  .learning_rate_rule = LearningRateRule::kSqrt,
                  .encoding = Encoding::kFloat16,
                  .batch_sizes = {64, 0, 8}};
  Plan read{.period = 9, .batch_sizes = {1}};

  for (const Axis axis : kAxes) {
    const std::optional<Plan> with = WithValue(read, axis, ValueOf(plan, axis));
    ASSERT_TRUE(with.has_value()) << FieldOf(axis);
    read = *with;
  }

  EXPECT_EQ(read, plan);
  EXPECT_EQ(WithValue(plan, Axis::kSynchronization, "every_step")->period, 1u);
  // As records of before have it.
  EXPECT_EQ(WithValue(plan, Axis::kBatch, "64 0 8")->batch_sizes, plan.batch_sizes);
  EXPECT_EQ(WithValue(plan, Axis::kSynchronization, "delayed")->synchronization,
            Synchronization::kDelayed);
}

TEST(AxesTest, WhatIsNoValueIsNotRead) {
  for (const char* text :
       {"", " ", "8 ", " 8", "8  8", "8,,8", "8, 8", "8,", "-1", "8 x", "4294967296"}) {
    EXPECT_FALSE(WithValue({}, Axis::kBatch, text).has_value()) << text;
  }
  for (const char* text :
       {"", "periodic", "periodic 0", "periodic x", "delayed 4", "every_step 1"}) {
    EXPECT_FALSE(WithValue({}, Axis::kSynchronization, text).has_value()) << text;
  }
  EXPECT_FALSE(WithValue({}, Axis::kAggregation, "sum").has_value());
  EXPECT_FALSE(WithValue({}, Axis::kLearningRate, "Constant").has_value());
  EXPECT_FALSE(WithValue({}, Axis::kEncoding, "auto").has_value()) << "of no plan";
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
