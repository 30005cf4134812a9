#include "client/render/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/sample_job.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DescribeTest, AJobIsDescribedDownToItsFile) {
  v1::Job job = FinishedJob();
  job.set_uid("u1");
  job.set_etag("e1");
  job.set_checkpoint_rounds(1200);
  for (const char* path : {"snapshots/0.000.safetensors", "snapshots/1.004.safetensors"}) {
    job.add_snapshots()->set_path(path);
    job.mutable_snapshots()->rbegin()->set_size_bytes(1024);
  }
  job.set_regroups(2);
  job.set_regroup_reason("worker 2 on node b was ended by signal 9 (SIGKILL)");
  job.set_resizes(1);
  job.set_resize_reason("from 2 to 3 workers without a stop: worker 4 on node c joins");
  job.set_transport("staged");
  job.set_transport_reason("worker 2 on node b has no NCCL");
  job.mutable_spec()->set_name("demo");
  job.mutable_spec()->set_priority(5);
  (*job.mutable_spec()->mutable_workers()->mutable_selector())["zone"] = "a";
  job.mutable_spec()->mutable_workers()->add_tolerations("gpu=shared");
  job.mutable_spec()->mutable_adapt()->add_frozen("batch");

  const std::string text = Describe(job, false);

  EXPECT_THAT(text, HasSubstr("etag            e1\n"));
  EXPECT_THAT(text, HasSubstr("checkpoint      after 1,200 rounds\n"));
  EXPECT_THAT(text, HasSubstr("snapshots        2 (2.0 KiB), snapshots/0.000.safetensors to "
                              "snapshots/1.004.safetensors\n"));
  EXPECT_THAT(text, HasSubstr("regrouped       2 times, last because worker 2 on node b was ended "
                              "by signal 9 (SIGKILL)\n"));
  EXPECT_THAT(text,
              HasSubstr("resized         once, last from 2 to 3 workers without a stop: worker "
                        "4 on node c joins\n"));
  EXPECT_THAT(text, HasSubstr("transport       staged: worker 2 on node b has no NCCL\n"));
  EXPECT_THAT(text, HasSubstr("\nplan:\n  version          1\n"));
  EXPECT_THAT(text, HasSubstr("\njob file:\n  name: demo\n"));
  EXPECT_THAT(text, HasSubstr("    selector:\n      zone: a\n    tolerations:\n"
                              "      - gpu=shared\n"));
  EXPECT_THAT(text, HasSubstr("  priority: 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(DescribeTest, WhetherAJobOfAnArraySharesAProcessIsTold) {
  v1::Job job = FinishedJob();
  EXPECT_THAT(Describe(job, false), Not(HasSubstr("\n  array ")));
  (*job.mutable_labels())["array"] = "lr-1";
  job.mutable_spec()->mutable_model()->set_builtin("bytes-lm");
  job.mutable_spec()->mutable_workers()->set_max(1);
  EXPECT_THAT(Describe(job, false),
              HasSubstr("lr-1: shares a process with others of it on its device\n"));
  job.mutable_spec()->mutable_workers()->set_max(2);
  EXPECT_THAT(Describe(job, false),
              HasSubstr("lr-1: by itself, as workers.max: found 2, allowed is 1\n"));
}

TEST(DescribeTest, EachAttemptIsTold) {
  v1::Job job = FinishedJob();
  v1::JobAttempt& first = *job.add_attempts();
  first.set_number(1);
  first.set_workers(3);
  first.add_nodes("a");
  first.add_nodes("b");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Describe(job, false), Not(HasSubstr("attempts:"))) << "one tells nothing";
  first.mutable_end_time()->set_seconds(1);
  first.set_rounds(300);
  first.set_samples(9600);
  first.set_reason("worker 2 on node a was ended by signal 9 (SIGKILL)");
  v1::JobAttempt& second = *job.add_attempts();
  second.set_number(2);
  second.set_workers(1);
  second.add_nodes("a");
  second.set_first_round(120);
  job.mutable_progress()->set_rounds(150);
  job.set_from("projects/default/jobs/demo-1");
  job.mutable_retry_time()->set_seconds(1);

  const std::string text = Describe(job, false);

  EXPECT_THAT(text, testing::ContainsRegex("\n  1 .*3 on a, b +0 +300 +9,600 +worker 2 on node a "
                                           "was ended by signal 9"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  2 .*1 on a +120 +150 +- +goes on"));
  EXPECT_THAT(text, HasSubstr("began from      projects/default/jobs/demo-1\n"));
  EXPECT_THAT(text, HasSubstr("tried again     "));
}

TEST(DescribeTest, AWorkerThatWaitsForDataIsNamed) {
  v1::Job job = FinishedJob();
  v1::WorkerProgress& worker = *job.mutable_progress()->add_workers();
  worker.set_rank(3);
  worker.set_data_ratio(0.04);
  EXPECT_THAT(Describe(job, false), Not(HasSubstr("waits for it")));

  worker.set_data_ratio(0.41);

  EXPECT_THAT(Describe(job, false), HasSubstr("rank 3 waits for it 41.0 % of its time\n"));
}

TEST(DescribeTest, ALinkIsShownWhereItIsKnown) {
  v1::Job job = FinishedJob();
  v1::WorkerProgress& worker = *job.mutable_progress()->add_workers();
  worker.set_rank(3);
  EXPECT_THAT(Describe(job, false), Not(HasSubstr("MiB/s")));

  worker.set_link_bytes_per_second(2.5 * (1 << 20));

  EXPECT_THAT(Describe(job, false), HasSubstr("2.5 MiB/s"));
}

TEST(DescribeTest, ANodeIsDescribedWithItsDevices) {
  v1::Node node;
  node.set_name("nodes/n0");
  node.set_connected(true);
  node.set_cordoned(true);
  node.add_taints("gpu=shared");
  (*node.mutable_labels())["zone"] = "a";
  v1::Device* device = node.add_devices();
  device->set_name("cuda:0");
  device->set_model("NVIDIA H200");
  device->set_uuid("GPU-1");
  device->set_memory_bytes(std::uint64_t{141} << 30);
  device->set_job("projects/default/jobs/demo-1");
  device->add_jobs("projects/default/jobs/demo-1");
  device->add_jobs("projects/default/jobs/demo-2");
  device->set_fault("the driver lost it");

  const std::string text = Describe(node, true);

  EXPECT_THAT(text, HasSubstr("status     \x1b[33mcordoned\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("labels     zone=a\n"));
  EXPECT_THAT(text, HasSubstr("taint      gpu=shared\n"));
  EXPECT_THAT(text,
              HasSubstr("  cuda:0  NVIDIA H200  141.0 GiB  real   -          demo-1,demo-2  GPU-1  "
                        "the driver lost it\n"));
}

}  // namespace
}  // namespace tactus::client
