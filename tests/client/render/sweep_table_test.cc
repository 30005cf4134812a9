#include "client/render/sweep_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tactus::client {
namespace {

v1::Job* Add(v1::ListJobsResponse* jobs, const std::string& rate, double loss) {
  v1::Job* job = jobs->add_jobs();
  job->set_name("projects/default/jobs/demo-" + std::to_string(jobs->jobs_size()));
  job->set_state(v1::JOB_STATE_RUNNING);
  (*job->mutable_labels())["sweep"] = "s";
  (*job->mutable_labels())["over/optimizer.sgd.learning_rate"] = rate;
  if (loss == 0) return job;
  job->mutable_progress()->set_rounds(7);
  job->mutable_progress()->set_loss(loss);
  return job;
}

TEST(SweepTableTest, TheBestComesFirstAndWhoHasNoLossLast) {
  v1::ListJobsResponse jobs;
  Add(&jobs, "0.1", 0);
  Add(&jobs, "0.2", std::nan(""));
  Add(&jobs, "0.3", 2.5);
  Add(&jobs, "0.4", 1)->mutable_progress()->mutable_validation()->mutable_best()->set_loss(3);
  Add(&jobs, "0.5", 2.75);

  SortByLoss(&jobs);

  EXPECT_EQ(RenderSweep(jobs, OutputFormat::kTable),
            "JOB     STATE    LEARNING_RATE  ROUNDS  LOSS    VALIDATION LOSS\n"
            "demo-3  running  0.3            7       2.5000  -\n"
            "demo-5  running  0.5            7       2.7500  -\n"
            "demo-4  running  0.4            7       1.0000  3.0000\n"
            "demo-1  running  0.1            -       -       -\n"
            "demo-2  running  0.2            7       nan     -\n");
  EXPECT_EQ(RenderSweep(jobs, OutputFormat::kName), "demo-3\ndemo-5\ndemo-4\ndemo-1\ndemo-2\n");
}

TEST(SweepTableTest, AResultThatWasValidatedOnceCounts) {
  v1::Job job;
  job.mutable_progress()->set_rounds(1);
  job.mutable_progress()->set_loss(1);
  job.mutable_result()->mutable_validation()->set_samples(10);
  job.mutable_result()->mutable_validation()->set_loss(4);
  EXPECT_EQ(LossToCompare(job), 4);
}

TEST(SweepTableTest, FieldsOfOneNameAreToldByTheirPaths) {
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  (*job->mutable_labels())["over/adapt.batch.policy"] = "fixed";
  (*job->mutable_labels())["over/adapt.synchronization.policy"] = "auto";
  (*job->mutable_labels())["over/seed"] = "3";

  const std::string table = RenderSweep(jobs, OutputFormat::kTable);
  EXPECT_NE(table.find("ADAPT.BATCH.POLICY  ADAPT.SYNCHRONIZATION.POLICY  SEED"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace tactus::client
