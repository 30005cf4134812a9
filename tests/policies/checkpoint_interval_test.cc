#include "policies/checkpoint_interval.h"

#include <chrono>
#include <cmath>

#include "gtest/gtest.h"

namespace tactus::policies {
namespace {

using std::chrono::minutes;

// Figures 3 to 5 of [daly], in minutes: dumps of 5 min at 24 h, 6 h and 15 min between failures.
TEST(CheckpointIntervalPaperTest, AgreesWithTheResultsOfTheFigures) {
  EXPECT_NEAR(CheckpointInterval(5, 24 * 60), 117, 0.5);
  EXPECT_NEAR(CheckpointInterval(5, 6 * 60), 57, 0.5);
  EXPECT_NEAR(CheckpointInterval(5, 15), 9.1, 0.05);
}

TEST(CheckpointIntervalTest, OfASmallCostIsYoungs) {
  EXPECT_NEAR(CheckpointInterval(0.01, 86400), std::sqrt(2 * 0.01 * 86400), 0.01);
}

TEST(CheckpointIntervalTest, OfNoCostIsZeroAndOfOneAboveTheMeanTheMean) {
  EXPECT_EQ(CheckpointInterval(0, 100), 0);
  EXPECT_EQ(CheckpointInterval(200, 100), 100);
  EXPECT_EQ(CheckpointInterval(1e9, 100), 100);
}

// What is expected to be lost, whole intervals at a time, is least there: against a dumb search.
TEST(CheckpointIntervalOracleTest, NothingElseCostsLess) {
  for (const double cost : {0.01, 1.0, 30.0}) {
    const double mean = 3600;
    // The expected time for an interval's work, begun anew after each loss.
    const auto stretch = [&](double interval) {
      return mean * std::expm1((interval + cost) / mean) / interval;
    };
    const double best = CheckpointInterval(cost, mean);
    for (const double factor : {0.5, 0.8, 0.95, 1.05, 1.25, 2.0}) {
      EXPECT_LT(stretch(best), stretch(best * factor)) << cost << " " << factor;
    }
  }
}

TEST(MeanBetweenLossesTest, BeginsWithADayOfAWorkerAndLearns) {
  EXPECT_EQ(MeanBetweenLosses(0, 0, 1), 86400);
  EXPECT_EQ(MeanBetweenLosses(0, 0, 8), 10800);
  EXPECT_EQ(MeanBetweenLosses(0, 1, 1), 43200);
  EXPECT_NEAR(MeanBetweenLosses(1e9, 999, 4), 1e9 / 1000 / 4, 100);
  EXPECT_EQ(MeanBetweenLosses(-5, 0, 0), 86400);
}

TEST(CheckpointScheduleTest, IsDueAfterTheIntervalThatWasAskedFor) {
  CheckpointSchedule schedule(minutes(10), 100, {.trained = minutes(3), .rounds = 5});

  EXPECT_FALSE(schedule.Due({minutes(12), 12}));
  EXPECT_TRUE(schedule.Due({minutes(13), 13}));
  schedule.Observe({.still_seconds = 60, .beside_seconds = 600});
  EXPECT_TRUE(schedule.Due({minutes(14), 14}));
  schedule.Taken({minutes(14), 14});
  EXPECT_FALSE(schedule.Due({minutes(23), 23}));
  EXPECT_TRUE(schedule.Due({minutes(24), 24}));
}

TEST(CheckpointScheduleTest, IsNotDueUntilARoundCounted) {
  CheckpointSchedule schedule(minutes(10), 100, {.trained = minutes(3), .rounds = 5});

  EXPECT_FALSE(schedule.Due({minutes(20), 5}));
  EXPECT_TRUE(schedule.Due({minutes(20), 6}));
  schedule.Taken({minutes(20), 6});
  EXPECT_FALSE(schedule.Due({minutes(40), 6}));
  EXPECT_TRUE(schedule.Due({minutes(40), 7}));
}

TEST(CheckpointScheduleTest, ChoosesByWhatTheFirstOneCost) {
  CheckpointSchedule schedule(std::nullopt, 86400, {});
  EXPECT_TRUE(schedule.Due({CheckpointSchedule::kShortest, 1}));

  schedule.Observe({.still_seconds = 1, .beside_seconds = 10});

  EXPECT_NEAR(ToSeconds(schedule.interval()), CheckpointInterval(2, 86400), 1e-6);
}

TEST(CheckpointScheduleTest, StaysWithinItsBounds) {
  CheckpointSchedule schedule(std::nullopt, 86400, {});

  schedule.Observe({.still_seconds = 1e-6});
  EXPECT_EQ(schedule.interval(), CheckpointSchedule::kShortest);
  schedule.Observe({.still_seconds = -1});
  EXPECT_EQ(schedule.interval(), CheckpointSchedule::kShortest);
  schedule.Observe({.still_seconds = 1e5});
  EXPECT_EQ(schedule.interval(), CheckpointSchedule::kLongest);
}

}  // namespace
}  // namespace tactus::policies
