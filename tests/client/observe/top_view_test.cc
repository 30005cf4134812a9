#include "client/observe/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::ListNodesResponse Nodes() {
  v1::ListNodesResponse nodes;
  v1::Node& a = *nodes.add_nodes();
  a.set_name("nodes/a");
  a.set_connected(true);
  v1::Device& first = *a.add_devices();
  first.set_name("cpu:0");
  first.set_job("projects/default/jobs/demo-1");
  v1::Device& second = *a.add_devices();
  second.set_name("cpu:1");
  second.set_fault("the driver\nlost it");
  nodes.add_nodes()->set_name("nodes/b");
  return nodes;
}

LiveJobs Jobs() {
  LiveJobs live;
  v1::ListJobsResponse& jobs = live.jobs;
  v1::Job& job = *jobs.add_jobs();
  job.set_name("projects/default/jobs/demo-1");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_progress()->set_samples_per_second(86.4);
  v1::WorkerProgress& worker = *job.mutable_progress()->add_workers();
  worker.set_node("a");
  worker.set_device("cpu:0");
  worker.set_batch_size(47);
  worker.set_idle_ratio(0.125);
  jobs.add_jobs()->set_state(v1::JOB_STATE_QUEUED);
  return live;
}

TEST(TopTextTest, SumsUpOnTheFirstLine) {
  EXPECT_THAT(TopText(Jobs(), Nodes(), false),
              StartsWith("1 node and 1 gone, 1 of 2 devices busy, 1 at fault; 2 jobs, 1 queued, 1 "
                         "running; 86.4 samples/s\n\n"));
}

TEST(TopTextTest, ADeviceShowsWhatItsWorkerDoes) {
  const std::string text = TopText(Jobs(), Nodes(), false);

  EXPECT_THAT(text, HasSubstr("a     ready   cpu:0   -      demo-1  47     "));
  EXPECT_THAT(text, HasSubstr("12.5 %"));
  EXPECT_THAT(text, HasSubstr("the driver lost it"));
  EXPECT_THAT(text, HasSubstr("b     gone    -       -      -       -      -          -       -"));
}

TEST(TopTextTest, OfManyJobsTheFirstRowsAreShownAndAllAreCounted) {
  LiveJobs live = Jobs();
  for (int i = 0; i < 199; ++i) live.jobs.add_jobs()->set_state(v1::JOB_STATE_QUEUED);
  const std::string all = TopText(live, Nodes(), false);
  live.more_queued = true;
  const std::string more = TopText(live, Nodes(), false);

  EXPECT_THAT(all, HasSubstr("; 201 jobs, 200 queued, 1 running; "));
  EXPECT_THAT(all, HasSubstr("\n... and 101 other jobs\n"));
  EXPECT_THAT(all, HasSubstr("demo-1  47 "));  // the device knows its worker
  EXPECT_THAT(more, HasSubstr("; more than 201 jobs, more than 200 queued, 1 running; "));
  EXPECT_THAT(more, HasSubstr("\n... and more than 101 other jobs\n"));
}

TEST(TopTextTest, NothingIsATableToo) {
  EXPECT_THAT(TopText({}, {}, false), StartsWith("0 nodes, 0 of 0 devices busy; 0 jobs\n"));
}

TEST(FrameTest, FitsTheScreen) {
  const std::string frame = Frame("abcdef\n\xc3\xa4\xc3\xb6\xc3\xbcxyz\n3\n4\n", {3, 4});

  EXPECT_EQ(frame, "\x1b[H\x1b[Kabcd\r\n\x1b[K\xc3\xa4\xc3\xb6\xc3\xbcx\r\n\x1b[J... ");
}

TEST(FrameTest, ColoursTakeNoRoomAndEndWithTheLine) {
  EXPECT_EQ(Frame("a\x1b[32mbcd\x1b[0me\n", {2, 3}), "\x1b[H\x1b[Ja\x1b[32mbc\x1b[0m");
}

TEST(FrameTest, WhatFitsIsWhole) {
  EXPECT_THAT(Frame("1\n2\n", {2, 80}), Not(HasSubstr("more")));
  EXPECT_THAT(Frame("1\n2\n3\n", {2, 80}), HasSubstr("... 2 lines more"));
}

}  // namespace
}  // namespace tactus::client
