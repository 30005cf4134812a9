#include "metrics/job_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "metrics/coordinator_metrics.h"

namespace tactus::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

class JobSeriesTest : public testing::Test {
 protected:
  void Add(std::uint64_t id) { jobs().Add(JobId{id}, "job-" + std::to_string(id)); }
  JobSeries& jobs() { return metrics_.jobs(); }
  std::string Text() const { return WriteText(*metrics_.registry()); }

  Instant now_{};
  std::int64_t wall_ = 0;
  CoordinatorMetrics metrics_{"1",
                              {.now = [this] { return now_; }, .wall = [this] { return wall_; }}};
};

TEST_F(JobSeriesTest, CountersBeginWithWhatIsSeenFirstAndNeverFall) {
  Add(1);
  jobs().Set(JobId{1}, {.samples = 1000});
  EXPECT_THAT(Text(), HasSubstr("tactus_job_samples_total{job_id=\"job-1\"} 0\n"));

  jobs().Set(JobId{1}, {.samples = 1640});
  EXPECT_THAT(Text(), HasSubstr("tactus_job_samples_total{job_id=\"job-1\"} 640\n"));

  jobs().Set(JobId{1}, {.samples = 1600});  // from a checkpoint
  jobs().Set(JobId{1}, {.samples = 1700});
  EXPECT_THAT(Text(), HasSubstr("tactus_job_samples_total{job_id=\"job-1\"} 740\n"));
}

TEST_F(JobSeriesTest, WhatIsNotKnownHasNoSeries) {
  Add(1);
  jobs().Set(JobId{1}, {});

  for (const char* metric : {"tactus_job_loss{", "tactus_job_eta_seconds{",
                             "tactus_job_last_round_seconds{", "tactus_job_orthogonality_ratio{"}) {
    EXPECT_THAT(Text(), Not(HasSubstr(metric)));
  }
}

TEST_F(JobSeriesTest, SeriesOfRanksThatAreNoMoreGo) {
  Add(1);
  jobs().Set(JobId{1}, {.workers = {{}, {}, {}}});
  ASSERT_THAT(Text(), HasSubstr("rank=\"2\""));

  jobs().Set(JobId{1}, {.workers = {{}}});

  EXPECT_THAT(Text(), HasSubstr("rank=\"0\""));
  EXPECT_THAT(Text(), Not(HasSubstr("rank=\"1\"")));
}

TEST_F(JobSeriesTest, TheModeInForceIsTheOnlyOne) {
  Add(1);
  jobs().Set(JobId{1}, {.aggregation = "average"});
  jobs().Set(JobId{1}, {.aggregation = "adasum"});

  EXPECT_THAT(Text(), HasSubstr("tactus_job_aggregation_mode{job_id=\"job-1\",mode=\"adasum\"} 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("mode=\"average\"")));
}

TEST_F(JobSeriesTest, TheTimeOfTheLastRoundBeginsAnewWhenTheJobRuns) {
  const std::string metric = "tactus_job_last_round_timestamp_seconds{job_id=\"job-1\"} ";
  Add(1);
  wall_ = 1'000'000'000;
  jobs().Set(JobId{1}, {.state = "starting"});
  EXPECT_THAT(Text(), Not(HasSubstr(metric)));
  wall_ = 2'000'000'000;
  jobs().Set(JobId{1}, {.state = "running"});
  EXPECT_THAT(Text(), HasSubstr(metric + "2\n"));
  wall_ = 3'000'000'000;
  jobs().Set(JobId{1}, {.state = "running"});
  EXPECT_THAT(Text(), HasSubstr(metric + "2\n"));
  jobs().SetRound(JobId{1}, {});
  EXPECT_THAT(Text(), HasSubstr(metric + "3\n"));

  wall_ = 9'000'000'000;
  jobs().Set(JobId{1}, {.state = "paused"});
  EXPECT_THAT(Text(), HasSubstr(metric + "3\n"));
  jobs().Set(JobId{1}, {.state = "running"});

  EXPECT_THAT(Text(), HasSubstr(metric + "9\n"));
}

TEST_F(JobSeriesTest, AJobWithoutASpeedHasNoSeriesOfIt) {
  Add(1);
  jobs().Set(JobId{1}, {.members = 2, .samples_per_second = 0});
  EXPECT_THAT(Text(), HasSubstr("tactus_job_goodput_samples_per_second{job_id=\"job-1\"} 0\n"));

  jobs().Set(JobId{1}, {.members = 2});

  EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_goodput_samples_per_second{")));
  EXPECT_THAT(Text(), HasSubstr("tactus_job_workers{job_id=\"job-1\"} 2\n"));
}

TEST_F(JobSeriesTest, LabelsAreEscaped) {
  jobs().Add(JobId{1}, "a\"b\\c");
  jobs().Set(JobId{1}, {});

  EXPECT_THAT(Text(), HasSubstr("tactus_job_workers{job_id=\"a\\\"b\\\\c\"} 0\n"));
}

TEST_F(JobSeriesTest, RanksBeyondTheBoundAreCountedOnce) {
  Add(1);
  for (int i = 0; i < 3; ++i) {
    jobs().Set(JobId{1}, {.workers = std::vector<JobFigures::Worker>(JobSeries::kRanksMax + 2)});
  }

  EXPECT_EQ(jobs().dropped(), 2u * 5);
  EXPECT_THAT(Text(), HasSubstr("rank=\"255\""));
  EXPECT_THAT(Text(), Not(HasSubstr("rank=\"256\"")));
  EXPECT_THAT(Text(), HasSubstr("tactus_metrics_series_dropped_total 10\n"));
}

TEST_F(JobSeriesTest, AllJobsTogetherHaveABoundedNumberOfWorkers) {
  const std::vector<JobFigures::Worker> many(JobSeries::kRanksMax);
  constexpr std::uint64_t kFull = JobSeries::kWorkersMax / JobSeries::kRanksMax;
  for (std::uint64_t id = 1; id <= kFull; ++id) {
    Add(id);
    jobs().Set(JobId{id}, {.workers = many});
  }
  Add(500);
  jobs().Set(JobId{500}, {.workers = {{}, {}}});
  jobs().SetPlaces(JobId{500}, {{.node = "a"}, {.node = "b"}});
  EXPECT_EQ(jobs().dropped(), 2u * 5);
  EXPECT_THAT(Text(), Not(HasSubstr("job_id=\"job-500\",rank")));

  jobs().Set(JobId{1}, {});
  jobs().Set(JobId{500}, {.workers = {{}, {}}});

  EXPECT_EQ(jobs().dropped(), 2u * 5);
  EXPECT_THAT(Text(), HasSubstr("tactus_worker_idle_ratio{job_id=\"job-500\",rank=\"1\"}"));
  EXPECT_THAT(Text(), HasSubstr("tactus_worker_info{job_id=\"job-500\",rank=\"1\",node=\"b\""));
}

TEST_F(JobSeriesTest, ALinkThatIsNotKnownHasNoSeries) {
  Add(1);
  jobs().Set(JobId{1}, {.workers = {{.link_bytes_per_second = 12e6}, {}}});

  EXPECT_THAT(
      Text(),
      HasSubstr("tactus_worker_link_bytes_per_second{job_id=\"job-1\",rank=\"0\"} 12000000\n"));
  EXPECT_THAT(Text(),
              Not(HasSubstr("tactus_worker_link_bytes_per_second{job_id=\"job-1\",rank=\"1\"}")));
}

TEST_F(JobSeriesTest, WorkersOfAJobWhoseSeriesWentLeaveRoom) {
  const std::vector<JobFigures::Worker> many(JobSeries::kRanksMax);
  constexpr std::uint64_t kFull = JobSeries::kWorkersMax / JobSeries::kRanksMax;
  for (std::uint64_t id = 1; id <= kFull; ++id) {
    Add(id);
    jobs().Set(JobId{id}, {.workers = many});
  }
  jobs().End(JobId{1});
  now_ += JobSeries::kKept;
  Text();

  Add(500);
  jobs().Set(JobId{500}, {.workers = many});

  EXPECT_EQ(jobs().dropped(), 0u);
}

TEST_F(JobSeriesTest, AJobBeyondTheBoundIsCountedOnce) {
  for (std::uint64_t id = 1; id <= JobSeries::kJobsMax; ++id) Add(id);
  Add(5000);
  const std::uint64_t once = jobs().dropped();
  EXPECT_GT(once, 0u);

  Add(5000);
  Add(5000);
  EXPECT_EQ(jobs().dropped(), once);

  Add(5001);
  EXPECT_EQ(jobs().dropped(), 2 * once);
}

TEST_F(JobSeriesTest, AJobBeyondTheBoundHasNoneUntilOneThatIsOverGivesWay) {
  for (std::uint64_t id = 1; id <= JobSeries::kJobsMax; ++id) Add(id);
  Add(5000);
  jobs().Set(JobId{5000}, {});
  EXPECT_THAT(Text(), Not(HasSubstr("job-5000")));
  EXPECT_GT(jobs().dropped(), 0u);

  jobs().End(JobId{7});
  now_ += Seconds(1);
  jobs().End(JobId{3});
  Add(5000);
  jobs().Set(JobId{5000}, {});

  EXPECT_THAT(Text(), HasSubstr("\"job-5000\""));
  EXPECT_THAT(Text(), Not(HasSubstr("\"job-7\"")));
  EXPECT_THAT(Text(), HasSubstr("\"job-3\""));
}

TEST_F(JobSeriesTest, SeriesOfAJobThatIsOverGoAfterAWhileAndNoOthers) {
  Add(1);
  Add(2);
  jobs().End(JobId{1});

  now_ += JobSeries::kKept - Seconds(1);
  EXPECT_THAT(Text(), HasSubstr("job-1"));

  now_ += Seconds(1);
  EXPECT_THAT(Text(), Not(HasSubstr("job-1")));
  EXPECT_THAT(Text(), HasSubstr("job-2"));
}

}  // namespace
}  // namespace tactus::metrics
