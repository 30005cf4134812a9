#include "client/render/summary.h"

#include <gtest/gtest.h>

#include "tests/client/sample_job.h"

namespace tactus::client {
namespace {

TEST(SummaryTest, SaysWhatAFinishedJobComesTo) {
  EXPECT_EQ(Summary(FinishedJob(), {"/r/model.pt", "/r/model.safetensors"}),
            "job demo-1 succeeded: 60 s are over\n"
            "  time             1m 00s\n"
            "  rounds           812, epochs completed 1\n"
            "  samples          37,500, 625 samples/s\n"
            "  train loss       1.8123 (mean of the last rounds)\n"
            "  validation loss  1.9011, accuracy 45.1 % (1,000 samples)\n"
            "  utilisation      95.1 % of the workers' own speeds together\n"
            "\n"
            "  worker  device               batch  samples  share   own speed      idle\n"
            "  0       local cpu:0 at 1.00  47     30,000   80.0 %  401 samples/s  2.0 %\n"
            "  1       local cpu:1 at 0.25  12     7,500    20.0 %  100 samples/s  31.0 %\n"
            "  speeds are emulated: a micro-batch is lengthened to its CPU time x factor / speed\n"
            "\n"
            "result:\n"
            "  /r/model.pt\n"
            "  /r/model.safetensors\n"
            "load it in Python:\n"
            "  model = torch.jit.load('/r/model.pt')\n");
}

TEST(SummaryTest, SkippedUpdatesAreNotKeptQuiet) {
  v1::Job job = FinishedJob();
  EXPECT_EQ(Summary(job, {}).find("skipped"), std::string::npos);

  job.mutable_progress()->set_skipped_rounds(3);

  EXPECT_NE(Summary(job, {}).find("  skipped          3 updates, as numbers were not finite\n"),
            std::string::npos);
}

TEST(SummaryTest, LeavesOutWhatIsNotThere) {
  v1::Job job = FinishedJob();
  job.mutable_result()->clear_validation();
  job.clear_progress();

  const std::string text = Summary(job, {});

  EXPECT_NE(text.find("validation loss  none\n"), std::string::npos);
  EXPECT_EQ(text.find("worker  "), std::string::npos);
  EXPECT_EQ(text.find("emulated"), std::string::npos);
  EXPECT_EQ(text.find("result:"), std::string::npos);
}

TEST(SummaryTest, AJobWithoutResultHasItsReason) {
  EXPECT_EQ(Summary(StateEvent(v1::JOB_STATE_FAILED, "no such file").job(), {}),
            "job demo-1 failed: no such file\n");
}

TEST(SummaryTest, PathsAreQuotedForPython) {
  const std::string text = Summary(FinishedJob(), {"/it's/model.pt"});

  EXPECT_NE(text.find("torch.jit.load('/it\\'s/model.pt')"), std::string::npos);
}

}  // namespace
}  // namespace tactus::client
