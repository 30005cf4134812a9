#include "client/observe/job_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tactus::client {
namespace {

using ::testing::SizeIs;

v1::Round RoundOf(std::uint64_t number, double seconds, const std::vector<std::uint64_t>& samples,
                  std::uint32_t steps = 1) {
  v1::Round round;
  round.set_round(number);
  round.set_seconds(seconds);
  round.set_loss(1.5);
  round.set_steps(steps);
  for (const std::uint64_t of_worker : samples) {
    round.set_samples(round.samples() + of_worker);
    round.add_worker_samples(of_worker);
  }
  return round;
}

const Curve& CurveOf(const Plot& plot, std::size_t panel, std::size_t series = 0) {
  return plot.panels.at(panel).series.at(series).curve;
}

TEST(JobPlotTest, BatchSizesAreSamplesOfAStep) {
  JobPlot history(PlotAxis::kRounds, {});
  history.Add(RoundOf(0, 1, {60, 20}, 4));

  const Plot plot = history.Finish("demo-1");

  EXPECT_EQ(CurveOf(plot, 0).buckets().at(0).last, 1.5);
  ASSERT_THAT(plot.panels.at(1).series, SizeIs(3));
  EXPECT_EQ(CurveOf(plot, 1, 0).buckets().at(0).last, 20);
  EXPECT_EQ(CurveOf(plot, 1, 1).buckets().at(0).last, 15);
  EXPECT_EQ(CurveOf(plot, 1, 2).buckets().at(0).last, 5);
  EXPECT_EQ(CurveOf(plot, 2).buckets().at(0).last, 4);
}

TEST(JobPlotTest, WhatAnEpochHadLeftIsNoBatchSize) {
  JobPlot history(PlotAxis::kRounds, {});
  const auto add = [&](std::uint64_t number, std::uint64_t epoch, std::uint64_t plan,
                       const std::vector<std::uint64_t>& samples) {
    v1::Round round = RoundOf(number, 1, samples);
    round.set_epoch(epoch);
    round.set_plan_version(plan);
    history.Add(round);
  };
  add(0, 0, 1, {8, 8});
  add(1, 0, 1, {3, 2});  // the epoch's last
  add(2, 1, 1, {8, 8});
  add(3, 1, 2, {4, 4});  // the epoch's last, of a plan that asks for less
  add(4, 2, 2, {4, 4});
  add(5, 2, 2, {1, 0});  // the job's last

  const Plot plot = history.Finish("demo-1");

  std::vector<double> all;
  for (const Curve::Bucket& bucket : CurveOf(plot, 1, 0).buckets()) all.push_back(bucket.last);
  EXPECT_THAT(all, testing::ElementsAre(16, 16, 8, 8));
  EXPECT_THAT(CurveOf(plot, 1, 1).buckets(), SizeIs(4));
  EXPECT_THAT(CurveOf(plot, 0).buckets(), SizeIs(6));  // their losses stay
}

TEST(JobPlotTest, TimeGoesOnThroughRoundsThatAreNotOnRecord) {
  JobPlot history(PlotAxis::kTime, {});
  history.Add(RoundOf(2, 1, {8}));  // two before it
  history.Add(RoundOf(3, 1, {8}));
  history.Add(RoundOf(8, 3, {8}));  // four of 2 s between

  const Plot plot = history.Finish("demo-1");

  ASSERT_THAT(CurveOf(plot, 0).buckets(), SizeIs(3));
  EXPECT_EQ(CurveOf(plot, 0).buckets()[0].x_last, 3);
  EXPECT_EQ(CurveOf(plot, 0).buckets()[1].x_last, 4);
  EXPECT_EQ(CurveOf(plot, 0).buckets()[2].x_last, 15);
}

TEST(JobPlotTest, WorkersThatCameLaterAndTooManyAreNoProblem) {
  JobPlot history(PlotAxis::kRounds, {});
  history.Add(RoundOf(0, 1, {8}));
  history.Add(RoundOf(1, 1, std::vector<std::uint64_t>(20, 8)));
  history.Add(RoundOf(2, 1, {}));

  const Plot plot = history.Finish("demo-1");

  EXPECT_THAT(plot.panels.at(1).series, SizeIs(9));
  EXPECT_THAT(CurveOf(plot, 1, 1).buckets(), SizeIs(2));
  EXPECT_THAT(CurveOf(plot, 1, 8).buckets(), SizeIs(1));
}

v1::Decision& AddDecision(v1::ListDecisionsResponse& decisions, std::uint64_t round) {
  v1::Decision& decision = *decisions.add_decisions();
  decision.set_axis(v1::AXIS_SYNCHRONIZATION);
  decision.set_from("every_step");
  decision.set_to("periodic 8");
  decision.set_round(round);
  decision.mutable_train_time()->set_seconds(999);  // of another clock than the curves
  decision.set_reason("the transfer takes longer");
  return decision;
}

TEST(JobPlotTest, DecisionsAreMarksWhereTheirRoundsEnd) {
  v1::ListDecisionsResponse decisions;
  AddDecision(decisions, 0).clear_from();  // the first plan changed nothing
  AddDecision(decisions, 1);
  AddDecision(decisions, 4);
  AddDecision(decisions, 9);  // behind the last round
  JobPlot over_time(PlotAxis::kTime, decisions);
  JobPlot over_rounds(PlotAxis::kRounds, decisions);
  for (JobPlot* const plot : {&over_time, &over_rounds}) {
    plot->Add(RoundOf(0, 1, {8}));
    plot->Add(RoundOf(1, 1, {8}));
    plot->Add(RoundOf(6, 3, {8}));  // four of 2 s before it
  }

  const Plot time = over_time.Finish("demo-1");
  const Plot rounds = over_rounds.Finish("demo-1");

  ASSERT_THAT(time.marks, SizeIs(2));
  EXPECT_EQ(time.marks[0].x, 2);
  EXPECT_EQ(time.marks[1].x, 8);  // the end of the third of the four
  EXPECT_EQ(rounds.marks.at(0).x, 1);
  EXPECT_EQ(rounds.marks.at(1).x, 4);
  EXPECT_EQ(time.marks[0].text,
            "synchronization: every_step to periodic 8. the transfer takes longer");
}

TEST(JobPlotTest, TheAxisBeginsWithTheFirstRoundWhereThatIsOnRecord) {
  JobPlot whole(PlotAxis::kTime, {});
  whole.Add(RoundOf(0, 2, {8}));
  JobPlot rest(PlotAxis::kTime, {});
  rest.Add(RoundOf(5, 2, {8}));

  EXPECT_EQ(whole.Finish("demo-1").x_begin, 0);
  EXPECT_FALSE(rest.Finish("demo-1").x_begin.has_value());
}

TEST(JobPlotTest, ValidationsArePointsWhereTheirRoundsEnd) {
  v1::ListValidationsResponse validations;
  for (const std::uint64_t rounds : {2, 6, 9}) {
    v1::ValidationPoint& point = *validations.add_validations();
    point.set_rounds(rounds);
    point.set_loss(static_cast<double>(rounds));
  }
  JobPlot by_time(PlotAxis::kTime, {}, validations);
  JobPlot by_round(PlotAxis::kRounds, {}, validations);
  for (JobPlot* history : {&by_time, &by_round}) {
    history->Add(RoundOf(0, 1, {8}));
    history->Add(RoundOf(1, 1, {8}));
    history->Add(RoundOf(7, 1, {8}));  // five of 1 s between
  }

  const Plot time = by_time.Finish("demo-1");
  const Plot round = by_round.Finish("demo-1");

  ASSERT_THAT(time.panels.at(0).series, SizeIs(2));
  ASSERT_THAT(CurveOf(time, 0, 1).buckets(), SizeIs(2));  // the last one's rounds are not there
  EXPECT_EQ(CurveOf(time, 0, 1).buckets()[0].x_last, 2);
  EXPECT_EQ(CurveOf(time, 0, 1).buckets()[1].x_last, 6);
  EXPECT_EQ(CurveOf(time, 0, 1).buckets()[1].last, 6);
  EXPECT_EQ(CurveOf(round, 0, 1).buckets()[1].x_last, 5);
}

TEST(JobPlotTest, ValidationsAreTrainingTimeBehindTheirRounds) {
  v1::ListValidationsResponse validations;
  for (const std::uint64_t rounds : {1, 2}) {
    v1::ValidationPoint& point = *validations.add_validations();
    point.set_rounds(rounds);
    point.set_loss(1);
    point.set_seconds(10);
  }
  JobPlot history(PlotAxis::kTime, {}, validations);
  for (const std::uint64_t round : {0, 1, 2}) history.Add(RoundOf(round, 1, {8}));

  const Plot plot = history.Finish("demo-1");

  EXPECT_EQ(CurveOf(plot, 0, 1).buckets()[1].x_last, 12);  // after 2 rounds and the first
  EXPECT_EQ(CurveOf(plot, 0).buckets()[0].x_last, 1);
  EXPECT_EQ(CurveOf(plot, 0).buckets()[2].x_last, 23);
}

}  // namespace
}  // namespace tactus::client
