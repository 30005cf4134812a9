#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/agent_metrics.h"
#include "metrics/coordinator_metrics.h"

namespace tactus::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, ScrapeShowsWhatWasSet) {
  CoordinatorMetrics metrics("1.2.3");
  metrics.SetJobs("running", 2);
  metrics.CountDecision("batch", "adopted");
  metrics.CountCall("Jobs/GetJob", "OK");
  metrics.CountCall("Jobs/GetJob", "OK");
  metrics.ObserveRound({.compute_seconds = 0.2, .steps = 2});
  metrics.ObserveWrite(Seconds(0.5), false);

  const std::string text = WriteText(*metrics.registry());

  EXPECT_THAT(text, HasSubstr("tactus_build_info{version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, HasSubstr("tactus_jobs{state=\"running\"} 2"));
  EXPECT_THAT(text, HasSubstr("tactus_decisions_total{kind=\"batch\",outcome=\"adopted\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("tactus_rpc_server_handled_total{code=\"OK\",method=\"Jobs/GetJob\"} 2"));
  EXPECT_THAT(text, HasSubstr("tactus_round_seconds_count{phase=\"compute\"} 1"));
  EXPECT_THAT(text, HasSubstr("tactus_worker_step_seconds_sum 0.1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_collective_seconds_count 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_store_failing 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_store_write_failures_total 1\n"));

  metrics.ObserveWrite(Seconds(0.5), true);

  EXPECT_THAT(WriteText(*metrics.registry()), HasSubstr("tactus_store_failing 0\n"));
}

TEST(MetricsTest, CountersOfClosedSetsAreThereBeforeTheirFirstEvent) {
  const std::string text = WriteText(*CoordinatorMetrics("1").registry());

  EXPECT_THAT(text, HasSubstr("tactus_membership_changes_total{reason=\"lost\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_decisions_total{kind=\"batch\",outcome=\"superseded\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_transfers{direction=\"download\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_jobs{state=\"failed\"} 0\n"));
}

TEST(MetricsTest, TheProcessSaysWhatItUses) {
  const std::string text = WriteText(*AgentMetrics("1").registry());

  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter"));
  EXPECT_THAT(text, testing::ContainsRegex("process_resident_memory_bytes [1-9]"));
  EXPECT_THAT(text, testing::ContainsRegex("process_open_fds [1-9]"));
  EXPECT_THAT(text, testing::ContainsRegex("process_start_time_seconds [1-9]"));
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

}  // namespace
}  // namespace tactus::metrics
