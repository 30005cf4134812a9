#include "policies/auto_aggregation.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "policies/useful_samples.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

TEST(AutoAggregationTest, DisagreementRunsFromEqualToOrthogonal) {
  EXPECT_EQ(Disagreement(0.25, 4), 0);
  EXPECT_EQ(Disagreement(1, 4), 1);
  EXPECT_NEAR(Disagreement(0.625, 4), 0.5, 1e-12);
  EXPECT_EQ(Disagreement(0.1, 4), 0) << "below 1/P";
  EXPECT_EQ(Disagreement(1, 1), 0);
}

TEST(AutoAggregationTest, AdasumOfEqualGradientsIsWorthWhatTheirAverageIs) {
  const double adasum = UsefulSamplesOfAdasum(
      {.batch = 128, .base_batch = 32, .noise_scale = 300, .disagreement = 0, .members = 4});

  EXPECT_NEAR(adasum,
              UsefulSamples(
                  128, {.rule = LearningRateRule::kConstant, .base_batch = 32, .noise_scale = 300}),
              1e-9);
}

TEST(AutoAggregationTest, InPureNoiseAdasumIsWorthAllSamplesAndTooMuchWhereTheRateIsTuned) {
  EXPECT_NEAR(
      UsefulSamplesOfAdasum(
          {.batch = 128, .base_batch = 32, .noise_scale = 1e9, .disagreement = 1, .members = 4}),
      128, 0.01);
  // A rate chosen for 128 samples, four times too long a step.
  EXPECT_LT(
      UsefulSamplesOfAdasum(
          {.batch = 128, .base_batch = 128, .noise_scale = 1e9, .disagreement = 1, .members = 4}),
      0);
}

// Four members under a plan of every step, whose gradients have some orthogonality.
class AutoAggregationLoopTest : public testing::Test {
 protected:
  AutoAggregationLoopTest() : planner_({.aggregation_policy = "auto"}) {
    plan_ = planner_.Start({.members = 4}).plan;
    plan_.version = 1;
  }

  // Returns how often the aggregation changed.
  int Run(int rounds, double orthogonality, double noise = 0) {
    int changes = 0;
    for (int i = 0; i < rounds; ++i) {
      const RoundFacts facts{.speeds = {100, 100, 100, 100},
                             .transfer_seconds = transfer_seconds_,
                             .noise_scale = noise_scale_,
                             .orthogonality = orthogonality + noise * rng_.Normal()};
      for (const Report& report : ReportsOf(plan_, round_, facts)) planner_.Observe(report);
      ++round_;
      const std::optional<Revision> revision = planner_.Decide(plan_, {});
      if (!revision) continue;
      changes += revision->plan.aggregation != plan_.aggregation ? 1 : 0;
      plan_ = revision->plan;
      last_ = revision->decisions[0];
    }
    return changes;
  }

  Planner planner_;
  Plan plan_;
  Decision last_;
  Rng rng_{1};
  std::uint64_t round_ = 0;
  double transfer_seconds_ = 0.1;
  double noise_scale_ = 5000;
};

TEST_F(AutoAggregationLoopTest, GradientsThatDifferAreSummedAndThoseThatAgreeAveraged) {
  EXPECT_EQ(Run(100, 0.95), 1);
  EXPECT_EQ(plan_.aggregation, Aggregation::kAdasum);
  EXPECT_EQ(last_.axis, Axis::kAggregation);
  EXPECT_EQ(last_.metric, "useful samples/s");
  EXPECT_GT(last_.predicted_gain, 0.1);

  EXPECT_EQ(Run(200, 0.3), 1);
  EXPECT_EQ(plan_.aggregation, Aggregation::kAverage);
}

// Where the exchange is most of a round, one half as long again is most of what adasum gains.
TEST_F(AutoAggregationLoopTest, AnExchangeThatCostsMoreThanItTeachesIsNotTaken) {
  noise_scale_ = 150;  // an update teaches 1.54 times as much
  transfer_seconds_ = 10;

  EXPECT_EQ(Run(100, 0.80), 0);

  transfer_seconds_ = 0.01;
  EXPECT_EQ(Run(100, 0.80), 1);
}

TEST_F(AutoAggregationLoopTest, BetweenTheThresholdsNothingChanges) {
  Run(100, 0.95);

  EXPECT_EQ(Run(2000, 0.25 + 0.75 * 0.45, 0.1), 0);
  EXPECT_EQ(plan_.aggregation, Aggregation::kAdasum);
}

TEST_F(AutoAggregationLoopTest, AQuantityThatSwingsBetweenThemMovesItEverLessOften) {
  int changes = 0;
  for (int swing = 0; swing < 100; ++swing) {
    changes += Run(100, 0.95);
    changes += Run(100, 0.3);
  }

  // 20, 40, 80 rounds running, then 160, which 100 never are.
  EXPECT_LE(changes, 3);
}

TEST(AutoAggregationTest, AChosenRateIsNotPushedAside) {
  VirtualJobOptions options{.workers = std::vector<VirtualWorker>(4, {.speed = 100})};
  options.planner.aggregation_policy = "auto";
  options.planner.learning_rate_policy = "auto";
  options.loss.variance = 1e5;
  VirtualJob job(options);

  job.Run(300);

  EXPECT_EQ(job.plan().aggregation, Aggregation::kAverage);
}

}  // namespace
}  // namespace tactus::policies
