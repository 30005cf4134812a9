#include "coordinator/job/progress_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;

// Two members at 100 samples/s each over a transfer of 10 ms, as Rig's ranks 0 and 1.
class ProgressTrackerTest : public testing::Test {
 protected:
  std::optional<RoundRecord> Add(std::uint32_t rank, std::uint64_t round, double seconds = 0) {
    return tracker_.Add(ReportOf(rank, {.round = round, .batch_sizes = {30, 10}}).report,
                        At(seconds));
  }

  ProgressTracker tracker_{2, {.epoch_samples = 1000}};
};

TEST_F(ProgressTrackerTest, ARoundIsCompleteWhenAllHaveReportedIt) {
  EXPECT_FALSE(Add(1, 0).has_value());
  EXPECT_EQ(tracker_.progress().rounds, 0u);

  const std::optional<RoundRecord> round = Add(0, 0);

  ASSERT_TRUE(round.has_value());
  EXPECT_THAT(round->worker_samples, ElementsAre(30u, 10u));
  EXPECT_THAT(round->worker_compute_seconds, ElementsAre(0.3, 0.1));
  EXPECT_THAT(round->worker_blocked_seconds,
              ElementsAre(testing::DoubleNear(0.01, 1e-9), testing::DoubleNear(0.21, 1e-9)));
  EXPECT_EQ(round->bytes, 4096u);
  EXPECT_EQ(round->samples, 40u);
  EXPECT_DOUBLE_EQ(round->seconds, 0.31);
  EXPECT_EQ(tracker_.progress().rounds, 1u);
  EXPECT_EQ(tracker_.progress().samples, 40u);
}

TEST_F(ProgressTrackerTest, ARoundSaysWhatTheUpdateUsedAndTheLeastTransfer) {
  policies::Report first = ReportOf(0, {.round = 0, .batch_sizes = {30, 10}}).report;
  first.steps = 8;
  first.learning_rate = 0.05;
  first.gain = 1.5;
  first.progress = 12.5;
  first.orthogonality = 0.75;
  first.transfer_seconds = 0.5;
  first.update_seconds = 0.125;
  policies::Report second = first;
  second.rank = 1;
  second.steps = 3;
  second.transfer_seconds = 0.25;
  second.update_seconds = -1;
  tracker_.Add(second, At(0));

  const std::optional<RoundRecord> round = tracker_.Add(first, At(0));

  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->steps, 8u);
  EXPECT_EQ(round->learning_rate, 0.05);
  EXPECT_EQ(round->gain, 1.5);
  EXPECT_EQ(round->progress, 12.5);
  EXPECT_EQ(round->orthogonality, 0.75);
  EXPECT_EQ(round->transfer_seconds, 0.25);
  EXPECT_THAT(round->worker_update_seconds, ElementsAre(0.125, 0));
}

TEST_F(ProgressTrackerTest, ARepeatedReportCountsOnce) {
  EXPECT_FALSE(Add(0, 0).has_value());
  EXPECT_FALSE(Add(0, 0).has_value());
  Add(1, 0);

  EXPECT_EQ(tracker_.progress().workers[0].samples, 30u);
}

TEST_F(ProgressTrackerTest, TheTransferIsWhatTheLastToArriveWaits) {
  Add(0, 0);
  Add(1, 0);

  // Rank 1 computes 0.1 s of a round of 0.31 s, transfers 0.01 s and idles for the rest.
  EXPECT_NEAR(tracker_.progress().workers[1].idle_ratio, 0.2 / 0.31, 1e-12);
  EXPECT_NEAR(tracker_.progress().workers[0].idle_ratio, 0, 1e-12);
  EXPECT_NEAR(tracker_.progress().workers[0].samples_per_second, 100, 1e-9);
  EXPECT_NEAR(tracker_.OwnSpeedSum(), 200, 1e-9);
}

TEST_F(ProgressTrackerTest, RoundsWithoutAnUpdateAreCounted) {
  policies::Report report = ReportOf(0, {.round = 0, .batch_sizes = {30, 10}}).report;
  report.nonfinite_members = 1;
  tracker_.Add(report, At(1));
  EXPECT_EQ(tracker_.progress().skipped_rounds, 0u);
  report.rank = 1;
  tracker_.Add(report, At(1));
  EXPECT_EQ(tracker_.progress().skipped_rounds, 1u);

  report.round = 1;
  report.nonfinite_members = 0;
  for (report.rank = 0; report.rank < 2; ++report.rank) tracker_.Add(report, At(2));

  EXPECT_EQ(tracker_.progress().skipped_rounds, 1u);
}

TEST_F(ProgressTrackerTest, RoundsBetweenTwoWholeOnesAreNotOnRecord) {
  ProgressTracker restarted(1, {.rounds = 40, .unrecorded_rounds = 2});
  policies::Report report = ReportOf(0, {.round = 45, .batch_sizes = {30}}).report;

  restarted.Add(report, At(0));  // those before it are maybe in the history
  EXPECT_EQ(restarted.progress().unrecorded_rounds, 2u);
  report.round = 46;
  restarted.Add(report, At(1));
  EXPECT_EQ(restarted.progress().unrecorded_rounds, 2u);
  report.round = 50;
  restarted.Add(report, At(2));

  EXPECT_EQ(restarted.progress().unrecorded_rounds, 5u);
}

TEST_F(ProgressTrackerTest, NorAreThoseBetweenTwoGroups) {
  ProgressTracker next(1, {.rounds = 40}, true);
  policies::Report report = ReportOf(0, {.round = 41, .batch_sizes = {30}}).report;

  next.Add(report, At(0));  // who died had not told of the one before

  EXPECT_EQ(next.progress().unrecorded_rounds, 1u);
}

TEST_F(ProgressTrackerTest, ALinkIsTheMedianOfTheRoundsThatToldIt) {
  const std::vector<double> told = {12e6, 0, 1e6, 11e6, -1, std::nan("")};
  for (std::uint64_t round = 0; round < told.size(); ++round) {
    policies::Report report = ReportOf(0, {.round = round, .batch_sizes = {30, 10}}).report;
    report.link_bytes_per_second = told[round];
    tracker_.Add(report, At(0));
    report.rank = 1;
    report.link_bytes_per_second = 0;
    tracker_.Add(report, At(0));
  }

  EXPECT_EQ(tracker_.progress().workers[0].link_bytes_per_second, 11e6);
  EXPECT_EQ(tracker_.progress().workers[1].link_bytes_per_second, 0);
}

TEST_F(ProgressTrackerTest, WhoWaitsForDataHasItsShareOfTheTime) {
  policies::Report report = ReportOf(0, {.round = 0, .batch_sizes = {30, 10}}).report;
  report.round_seconds = 0.5;
  report.data_seconds = 0.125;
  tracker_.Add(report, At(0));
  report.rank = 1;
  report.data_seconds = std::nan("");
  tracker_.Add(report, At(0));

  EXPECT_EQ(tracker_.progress().workers[0].data_ratio, 0.25);
  EXPECT_EQ(tracker_.progress().workers[1].data_ratio, 0);
}

TEST_F(ProgressTrackerTest, ABurstOfReportsDoesNotLookLikeSpeed) {
  for (std::uint64_t round = 0; round < 100; ++round) {
    Add(0, round, 60);
    Add(1, round, 60);
  }

  EXPECT_NEAR(tracker_.progress().samples_per_second, 40 / 0.31, 1e-9);
}

TEST_F(ProgressTrackerTest, TheRateForgetsRoundsOlderThanItsWindow) {
  policies::Report slow = ReportOf(0, {.round = 0, .batch_sizes = {30, 10}}).report;
  slow.round_seconds = 3.1;
  tracker_.Add(slow, At(0));
  Add(1, 0, 0);
  EXPECT_NEAR(tracker_.progress().samples_per_second, 40 / ((3.1 + 0.31) / 2), 1e-9);

  Add(0, 1, 5.5);
  Add(1, 1, 5.5);

  EXPECT_NEAR(tracker_.progress().samples_per_second, 40 / 0.31, 1e-9);
  EXPECT_NEAR(tracker_.RoundSeconds(), 0.31, 1e-12);
}

TEST_F(ProgressTrackerTest, ALostReportEndsTheWaitForItsRoundOnly) {
  Add(0, 0);
  Add(0, 1);

  ASSERT_TRUE(Add(1, 1).has_value());

  EXPECT_EQ(tracker_.progress().rounds, 2u);
  EXPECT_EQ(tracker_.progress().samples, 80u);  // the ledger's count
}

TEST_F(ProgressTrackerTest, TimesThatAreNoneCountAsZero) {
  policies::Report broken = ReportOf(0, {.round = 0, .batch_sizes = {30, 10}}).report;
  broken.compute_seconds = -1;
  broken.blocked_seconds = std::nan("");
  broken.round_seconds = std::numeric_limits<double>::infinity();
  broken.loss_mean_global = std::nan("");
  tracker_.Add(broken, At(0));

  Add(1, 0);

  EXPECT_EQ(tracker_.progress().workers[0].samples_per_second, 0);
  EXPECT_EQ(tracker_.progress().workers[0].idle_ratio, 0);
  EXPECT_EQ(tracker_.progress().loss, 0);
  EXPECT_TRUE(std::isfinite(tracker_.progress().samples_per_second));
}

TEST_F(ProgressTrackerTest, ProgressGoesOnFromWhereARestartFoundIt) {
  ProgressTracker tracker(
      1, {.rounds = 5, .epoch_samples = 100, .loss = 3, .workers = {{.samples = 50}}});

  tracker.Add({.round = 7, .samples = 10, .samples_global = 10, .epoch = 1, .epoch_consumed = 20},
              At(0));

  EXPECT_EQ(tracker.progress().rounds, 8u);
  EXPECT_EQ(tracker.progress().samples, 120u);
  EXPECT_EQ(tracker.progress().workers[0].samples, 60u);
}

// The dumb twin: the mean of the last rounds, from all of them.
TEST(ProgressTrackerPropertyTest, TheLossIsTheSampleWeightedMeanOfTheLastRounds) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    ProgressTracker tracker(1, {});
    std::vector<policies::Report> reports;
    const std::uint64_t rounds = 1 + rng.Below(60);

    for (std::uint64_t round = 0; round < rounds; ++round) {
      reports.push_back({.round = round,
                         .samples_global = 1 + rng.Below(100),
                         .loss_mean_global = rng.Uniform() * 5});
      tracker.Add(reports.back(), At(static_cast<double>(round)));
    }

    double loss = 0;
    double samples = 0;
    for (std::size_t i = rounds > 20 ? rounds - 20 : 0; i < rounds; ++i) {
      const auto weight = static_cast<double>(reports[i].samples_global);
      loss += weight * reports[i].loss_mean_global;
      samples += weight;
    }
    // Sums of at most 20 positive terms, in the same order: a few roundings of 2^-53 each.
    EXPECT_NEAR(tracker.progress().loss, loss / samples, 1e-13);
  }
}

TEST(RoundTableTest, TheOldestIncompleteRoundIsDroppedWhenThereAreTooMany) {
  RoundTable table(2);

  for (std::uint64_t round = 0; round <= RoundTable::kRoundsMax; ++round) {
    EXPECT_EQ(table.Add({.round = round, .rank = 0}), nullptr);
  }

  EXPECT_EQ(table.size(), RoundTable::kRoundsMax);
  EXPECT_EQ(table.Add({.round = 0, .rank = 1}), nullptr);
  EXPECT_NE(table.Add({.round = 1, .rank = 1}), nullptr);
}

TEST(RoundTableTest, ACompleteRoundEndsTheWaitForEarlierOnes) {
  RoundTable table(2);
  table.Add({.round = 0, .rank = 0});
  table.Add({.round = 1, .rank = 0});
  table.Add({.round = 2, .rank = 0});

  const std::vector<policies::Report>* reports = table.Add({.round = 1, .rank = 1});

  ASSERT_NE(reports, nullptr);
  EXPECT_EQ(reports->size(), 2u);
  EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace tactus::job
