#include "runtime/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, ScrapeShowsWhatWasSet) {
  CoordinatorMetrics metrics("1.2.3");
  metrics.SetJobs("running", 2);
  metrics.SetJob("shakespeare-3", {.loss = 1.5, .samples = 640, .workers = {{.batch = 64}, {}}});
  metrics.CountDecision("batch", "adopted");
  metrics.CountCall("Jobs/GetJob", "OK");
  metrics.ObserveRound("compute", 0.2);

  const std::string text = WriteText(*metrics.registry());

  EXPECT_THAT(text, HasSubstr("tactus_build_info{version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, HasSubstr("tactus_jobs{state=\"running\"} 2"));
  EXPECT_THAT(text, HasSubstr("tactus_job_samples_total{job_id=\"shakespeare-3\"} 640"));
  EXPECT_THAT(text,
              HasSubstr("tactus_worker_batch_samples{job_id=\"shakespeare-3\",rank=\"0\"} 64"));
  EXPECT_THAT(text, HasSubstr("tactus_decisions_total{kind=\"batch\",outcome=\"adopted\"} 1"));
  EXPECT_THAT(text, HasSubstr("tactus_round_seconds_count{phase=\"compute\"} 1"));
}

TEST(MetricsTest, SeriesOfAJobGoWithTheJob) {
  CoordinatorMetrics metrics("1");
  metrics.SetJob("a", {.workers = {{}, {}}});
  metrics.SetJob("b", {.workers = {{}}});

  metrics.RemoveJob("a");

  const std::string text = WriteText(*metrics.registry());
  EXPECT_THAT(text, Not(HasSubstr("job_id=\"a\"")));
  EXPECT_THAT(text, HasSubstr("job_id=\"b\""));
}

TEST(MetricsTest, SeriesOfRanksThatAreNoMoreGo) {
  CoordinatorMetrics metrics("1");
  metrics.SetJob("a", {.workers = {{}, {}, {}}});

  metrics.SetJob("a", {.workers = {{}}});

  const std::string text = WriteText(*metrics.registry());
  EXPECT_THAT(text, HasSubstr("rank=\"0\""));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"1\"")));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"2\"")));
}

TEST(MetricsTest, AGpuHasASeriesOfWhatItSays) {
  AgentMetrics metrics("1");
  metrics.SetGpu({.index = 3,
                  .uuid = "GPU-3",
                  .model = "A model",
                  .utilization_ratio = 0.5,
                  .power_watts = 412.5,
                  .throttle_reasons = {"software power cap"},
                  .fault = true});

  const std::string text = WriteText(*metrics.registry());
  EXPECT_THAT(text, HasSubstr("tactus_gpu_info{gpu=\"3\",model=\"A model\",uuid=\"GPU-3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_utilization_ratio{gpu=\"3\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_power_watts{gpu=\"3\"} 412.5\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_throttled{gpu=\"3\",reason=\"software power cap\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_fault{gpu=\"3\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("tactus_gpu_sm_clock_hertz")));

  metrics.SetGpu({.index = 3, .uuid = "GPU-3", .model = "A model", .sm_clock_hertz = 1.5e9});

  const std::string later = WriteText(*metrics.registry());
  EXPECT_THAT(later, Not(HasSubstr("tactus_gpu_utilization_ratio")));
  EXPECT_THAT(later, HasSubstr("tactus_gpu_sm_clock_hertz{gpu=\"3\"} 1500000000\n"));
  EXPECT_THAT(later,
              HasSubstr("tactus_gpu_throttled{gpu=\"3\",reason=\"software power cap\"} 0\n"));
  EXPECT_THAT(later, HasSubstr("tactus_gpu_fault{gpu=\"3\"} 0\n"));
}

TEST(MetricsTest, AnAgentCountsWhatItRelaysAndWhatDidNotFit) {
  AgentMetrics metrics("1");
  metrics.CountReportsRelayed(1);
  metrics.CountOutOfMemory(0);
  metrics.CountOutOfMemory(2);

  const std::string text = WriteText(*metrics.registry());
  EXPECT_THAT(text, HasSubstr("tactus_agent_reports_relayed_total 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_agent_out_of_memory_total 2\n"));
}

TEST(MetricsTest, TheEndpointSaysWhichPortItTook) {
  AgentMetrics metrics("1");

  const auto endpoint = MetricsEndpoint::Open("127.0.0.1:0", metrics.registry());

  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT((*endpoint)->address(), testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
}

TEST(MetricsTest, ATakenPortIsAStatusThatNamesIt) {
  AgentMetrics metrics("1");
  const auto first = MetricsEndpoint::Open("127.0.0.1:0", metrics.registry());
  ASSERT_TRUE(first.ok()) << first.status();

  const auto second = MetricsEndpoint::Open((*first)->address(), metrics.registry());

  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

TEST(MetricsTest, AddressesWithoutAPortAreRefused) {
  AgentMetrics metrics("1");
  for (const char* address : {"", "localhost", "localhost:", ":80", "localhost:http", "a:65536"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(MetricsEndpoint::Open(address, metrics.registry()).status()))
        << address;
  }
}

}  // namespace
}  // namespace tactus::runtime
