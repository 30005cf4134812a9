#include "client/render/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/client/sample_job.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TablesTest, JobsHaveALineEach) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = FinishedJob();
  *jobs.add_jobs() = StateEvent(v1::JOB_STATE_QUEUED, "").job();

  EXPECT_EQ(Render(jobs, OutputFormat::kTable),
            "NAME    STATE      PRIORITY  EPOCHS  ROUNDS  LOSS    SAMPLES/S  WORKERS  CREATED\n"
            "demo-1  succeeded  0         0.12    143     2.3141  -          2        -\n"
            "demo-1  queued     0         -       -       -       -          0        -\n");
  EXPECT_EQ(Render(jobs, OutputFormat::kName), "demo-1\ndemo-1\n");
}

TEST(TablesTest, AJobThatWaitsHasNeitherSpeedNorWorkers) {
  v1::Job job = StateEvent(v1::JOB_STATE_RUNNING, "").job();
  *job.mutable_progress() = SampleProgress(UnequalWorkers());
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job;
  job.set_state(v1::JOB_STATE_PAUSED);
  *jobs.add_jobs() = job;

  EXPECT_EQ(Render(jobs, OutputFormat::kTable),
            "NAME    STATE    PRIORITY  EPOCHS  ROUNDS  LOSS    SAMPLES/S  WORKERS  CREATED\n"
            "demo-1  running  0         0.12    143     2.3141  1,204      2        -\n"
            "demo-1  paused   0         0.12    143     2.3141  -          0        -\n");
  const std::string paused = Render(job, OutputFormat::kTable);
  EXPECT_THAT(paused, Not(HasSubstr("samples/s")));
  EXPECT_THAT(paused, Not(HasSubstr("RANK")));
}

TEST(TablesTest, WideTablesSayWhatWasAskedFor) {
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  *job = StateEvent(v1::JOB_STATE_PAUSED, "by the user").job();
  job->mutable_spec()->set_priority(-7);
  job->mutable_spec()->mutable_workers()->set_min(2);
  job->mutable_spec()->mutable_workers()->set_max(8);
  (*job->mutable_labels())["zone"] = "a";
  (*job->mutable_labels())["team"] = "vision";

  const std::string text = Render(jobs, OutputFormat::kWide);

  EXPECT_THAT(text, HasSubstr("WANTED  UPDATED  LABELS              REASON\n"));
  EXPECT_THAT(text, HasSubstr("2 to 8  -        team=vision,zone=a  by the user\n"));
  EXPECT_THAT(text, HasSubstr("paused  -7"));
}

TEST(TablesTest, StatesAreColouredAndColumnsStayStraight) {
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = StateEvent(v1::JOB_STATE_FAILED, "").job();
  *jobs.add_jobs() = StateEvent(v1::JOB_STATE_QUEUED, "").job();

  const std::string text = Render(jobs, Look(OutputFormat::kTable, true));

  EXPECT_THAT(text, HasSubstr("demo-1  \x1b[31mfailed\x1b[0m  0 "));
  EXPECT_THAT(text, HasSubstr("demo-1  queued  0 "));
  EXPECT_EQ(Render(jobs, OutputFormat::kTable).find('\x1b'), std::string::npos);
}

TEST(TablesTest, ANodesStatusSaysWhetherItTakesWorkers) {
  v1::Node node;
  EXPECT_EQ(NodeStatus(node), "gone");
  node.set_connected(true);
  EXPECT_EQ(NodeStatus(node), "ready");
  node.set_leaving("SIGTERM");
  EXPECT_EQ(NodeStatus(node), "leaving");
  node.clear_leaving();
  node.set_cordoned(true);
  EXPECT_EQ(NodeStatus(node), "cordoned");
  node.set_draining(true);
  node.add_devices();
  EXPECT_EQ(NodeStatus(node), "drained");
  node.add_devices()->set_job("projects/default/jobs/demo-1");
  EXPECT_EQ(NodeStatus(node), "draining");
  node.set_connected(false);
  EXPECT_EQ(NodeStatus(node), "gone");
}

TEST(TablesTest, WorkersAreSaidAsARange) {
  v1::Workers workers;
  EXPECT_EQ(WorkersText(workers), "1 or more");
  workers.set_max(1);
  EXPECT_EQ(WorkersText(workers), "1");
  workers.set_max(4);
  EXPECT_EQ(WorkersText(workers), "1 to 4");
}

TEST(TablesTest, OneJobIsShownInFull) {
  const std::string text = Render(FinishedJob(), OutputFormat::kTable);

  EXPECT_THAT(text, HasSubstr("state            succeeded\n"));
  EXPECT_THAT(text, HasSubstr("file             model.pt (1.2 MiB)\n"));
  EXPECT_THAT(text, HasSubstr("utilisation      95.1 %\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "RANK  WORKER    NODE   DEVICE  BATCH  SAMPLES OF GROUP  SAMPLES/S  IDLE    LINK\n"));
}

TEST(TablesTest, YamlIsTheMessage) {
  v1::Job job = StateEvent(v1::JOB_STATE_RUNNING, "").job();
  job.mutable_spec()->set_name("demo");
  job.mutable_spec()->mutable_stop()->mutable_time()->set_seconds(90);
  job.mutable_create_time()->set_seconds(1);
  (*job.mutable_labels())["team"] = "a b";
  job.mutable_progress()->mutable_plan()->add_batch_sizes(3);
  job.mutable_progress()->mutable_plan()->add_batch_sizes(4);
  job.mutable_progress()->add_workers()->set_node("n0");
  job.mutable_progress()->add_workers();

  EXPECT_EQ(Render(job, OutputFormat::kYaml),
            "name: projects/default/jobs/demo-1\n"
            "state: running\n"
            "spec:\n"
            "  name: demo\n"
            "  stop:\n"
            "    time: 1m30s\n"
            "create_time: \"1970-01-01T00:00:01Z\"\n"
            "labels:\n"
            "  team: a b\n"
            "progress:\n"
            "  plan:\n"
            "    batch_sizes: [3, 4]\n"
            "  workers:\n"
            "    - node: n0\n"
            "    - {}\n");
}

TEST(TablesTest, JsonHasTheSchemasNames) {
  const nlohmann::json job = nlohmann::json::parse(Render(FinishedJob(), OutputFormat::kJson));

  EXPECT_EQ(job["state"], "JOB_STATE_SUCCEEDED");
  EXPECT_EQ(job["result"]["train_loss"], 1.8123);
}

TEST(TablesTest, NodesHaveALineADevice) {
  v1::ListNodesResponse nodes;
  v1::Node* node = nodes.add_nodes();
  node->set_name("nodes/n0");
  node->set_connected(true);
  v1::Device* device = node->add_devices();
  device->set_name("cpu:0");
  device->set_kind(v1::DEVICE_KIND_CPU);
  device->set_model("EPYC");
  device->set_emulated_speed(0.5);
  device->set_job("projects/default/jobs/demo-1");
  nodes.add_nodes()->set_name("nodes/n1");

  EXPECT_EQ(Render(nodes, OutputFormat::kTable),
            "NODE  STATUS  DEVICE  KIND  MODEL  SPEED    JOB     METRICS\n"
            "n0    ready   cpu:0   cpu   EPYC   at 0.50  demo-1  -\n"
            "n1    gone    -       -     -      -        -       -\n");
  EXPECT_EQ(Render(nodes, OutputFormat::kName), "n0\nn1\n");
  device->set_fault("the driver lost it");
  EXPECT_THAT(Render(nodes, OutputFormat::kWide), HasSubstr("  the driver lost it  "));
}

TEST(TablesTest, ADeviceHasTheNamesOfAllItsJobs) {
  v1::ListNodesResponse nodes;
  v1::Node* node = nodes.add_nodes();
  node->set_name("nodes/n0");
  v1::Device* device = node->add_devices();
  EXPECT_EQ(JobsText(*device), "-");
  device->set_job("projects/default/jobs/lr-1");
  device->add_jobs("projects/default/jobs/lr-1");
  device->add_jobs("projects/default/jobs/lr-2");

  EXPECT_THAT(Render(nodes, OutputFormat::kTable), HasSubstr("  lr-1,lr-2  "));
}

TEST(TablesTest, DecisionsHaveALineEach) {
  v1::ListDecisionsResponse decisions;
  v1::Decision* first = decisions.add_decisions();
  first->set_name("projects/default/jobs/demo-1/decisions/1-batch");
  first->set_plan_version(1);
  first->set_axis(v1::AXIS_BATCH);
  first->set_to("8,8");
  first->set_reason("equal shares");
  v1::Decision* second = decisions.add_decisions();
  second->set_name("projects/default/jobs/demo-1/decisions/2-learning-rate");
  second->set_plan_version(2);
  second->set_axis(v1::AXIS_LEARNING_RATE);
  second->set_round(1200);
  second->mutable_train_time()->set_seconds(63);
  second->set_from("constant");
  second->set_to("adascale");
  second->set_metric("samples/s");
  second->set_predicted_gain(0.25);
  second->set_measured_gain(-0.05);
  second->set_reason("noise");

  EXPECT_EQ(
      Render(decisions, OutputFormat::kTable),
      "DECISION         ROUND  TIME    FROM      TO        PREDICTED  MEASURED  METRIC     REASON\n"
      "1-batch          0      0.0s    -         8,8       -          -         -          equal "
      "shares\n"
      "2-learning-rate  1,200  1m 03s  constant  adascale  +25.0 %    -5.0 %    samples/s  "
      "noise\n");
  EXPECT_EQ(Render(decisions, OutputFormat::kName), "1-batch\n2-learning-rate\n");
  EXPECT_THAT(Render(decisions, OutputFormat::kYaml), HasSubstr("axis: learning_rate\n"));
  EXPECT_EQ(nlohmann::json::parse(Render(decisions, OutputFormat::kJson))["decisions"][1]["to"],
            "adascale");
}

TEST(TablesTest, DevicesAreWorthWhatTheyAddAndMarkedWhereTheyCost) {
  v1::DeviceValues values;
  const auto write = [](v1::DeviceValue* value, const char* node, double adds) {
    value->set_node(node);
    value->set_device("cpu:0");
    value->set_samples_per_second(64);
    value->set_adds(adds);
    value->set_share(adds / 100);
  };
  write(values.add_devices(), "a", 25);
  write(values.add_devices(), "b", -12.5);
  write(values.add_more(), "a", 10);

  EXPECT_EQ(Render(values, OutputFormat::kTable),
            "DEVICE                 SAMPLES/S  USEFUL SAMPLES/S  OF THE GROUP  NOTE\n"
            "a cpu:0                64.0       +25.0             +25.0 %       -\n"
            "b cpu:0                64.0       -12.5             -12.5 %       costs more than it "
            "brings\n"
            "one more like a cpu:0  64.0       +10.0             +10.0 %       -\n");
  EXPECT_EQ(nlohmann::json::parse(Render(values, OutputFormat::kJson))["devices"][1]["adds"],
            -12.5);
}

TEST(TablesTest, ANarrowTerminalIsShownWhatMattersMost) {
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  *job = StateEvent(v1::JOB_STATE_RUNNING, "").job();
  *job->mutable_progress() = SampleProgress(UnequalWorkers());
  job->mutable_create_time()->set_seconds(1'700'000'000);

  EXPECT_EQ(Render(jobs, {OutputFormat::kTable, false, 40}),
            "NAME    STATE    LOSS    SAMPLES/S\n"
            "demo-1  running  2.3141  1,204\n");
  EXPECT_EQ(Render(jobs, {OutputFormat::kTable, true, 42}),
            "NAME    STATE    ROUNDS  LOSS    SAMPLES/S\n"
            "demo-1  \x1b[36mrunning\x1b[0m  143     2.3141  1,204\n");
  EXPECT_EQ(Render(jobs, {OutputFormat::kTable, false, 1}),
            "NAME    STATE\n"
            "demo-1  running\n");
  EXPECT_EQ(Render(jobs, {OutputFormat::kTable, false, 200}), Render(jobs, OutputFormat::kTable));
  EXPECT_EQ(Render(jobs, {OutputFormat::kWide, false, 40}), Render(jobs, OutputFormat::kWide));
}

TEST(TablesTest, ANarrowTerminalIsShownWhichNodesAndDevicesThereAre) {
  v1::ListNodesResponse nodes;
  v1::Node* node = nodes.add_nodes();
  node->set_name("nodes/n0");
  node->set_connected(true);
  node->set_metrics_address("10.0.0.1:9090");
  v1::Device* device = node->add_devices();
  device->set_name("cuda:0");
  device->set_kind(v1::DEVICE_KIND_CUDA);
  device->set_model("NVIDIA H100 80GB HBM3");
  device->set_job("projects/default/jobs/demo-1");

  EXPECT_EQ(Render(nodes, {OutputFormat::kTable, false, 40}),
            "NODE  STATUS  DEVICE  KIND  JOB\n"
            "n0    ready   cuda:0  cuda  demo-1\n");
}

TEST(TablesTest, RoundsShowWhatEachRankDid) {
  v1::ListRoundsResponse rounds;
  v1::Round* round = rounds.add_rounds();
  round->set_round(3);
  round->set_samples(64);
  round->set_loss(2.5);
  round->set_seconds(0.25);
  round->set_plan_version(2);
  round->add_worker_samples(47);
  round->add_worker_samples(17);

  EXPECT_EQ(Render(rounds, OutputFormat::kTable),
            "ROUND  EPOCH  LOSS    SAMPLES  SECONDS  PLAN  SAMPLES BY RANK\n"
            "3      0      2.5000  64       0.2500   2     47,17\n");
}

}  // namespace
}  // namespace tactus::client
