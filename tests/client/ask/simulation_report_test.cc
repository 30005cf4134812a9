#include "client/ask/simulation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/sample_outcome.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SimulationReportTest, TheTableHasFiguresWorkersAndDecisions) {
  EXPECT_EQ(ReportTable(SampleOutcome(), {.seed = 7, .loss = 1.5}),
            R"(job               demo-1
state             succeeded
reason            time: 100 s are over
queued            2.5s
training took     1m 40s
time to loss 1.5  50s
samples/s         960
utilisation       96.0 %
rounds            1,500
samples           96,000
epochs            1
train loss        0.5000
sent              3.0 MiB
decisions         2
faults            1
seed              7

RANK  NODE  DEVICE  SAMPLES  COMPUTE  WAIT   TRANSFER
0     a     cpu:0   72,000   90.0 %   5.0 %  5.0 %
1     b     cpu:0   24,000   100.0 %  0.0 %  0.0 %

DECIDED  ROUND  PLAN  BATCH  REASON
4.0s     0      1     32,32  first plan
30s      40     2     48,16  b is "slow"
)");
}

TEST(SimulationReportTest, AJobThatWasFittedKeepsItsNameAndShortTransfersAreSaid) {
  ReportOptions options;
  options.fit = FitSummary{.job = "projects/default/jobs/page-demo-5",
                           .rounds = 30,
                           .transfer_seconds = 0.00418,
                           .recorded_samples_per_second = 100,
                           .modelled_samples_per_second = 98};

  const std::string text = ReportTable(SampleOutcome(), options);

  EXPECT_THAT(text, HasSubstr("job            page-demo-5\n"));
  EXPECT_THAT(text, HasSubstr("transfer   4.18 ms a round\n"));
  const auto report = nlohmann::json::parse(ReportJson(SampleOutcome(), options));
  EXPECT_EQ(report["jobs"][0]["name"], "page-demo-5");
  options.fit->transfer_seconds = 0.0000213;
  EXPECT_THAT(ReportTable(SampleOutcome(), options), HasSubstr("transfer   21.3 us a round\n"));
  options.fit->transfer_seconds = 1.5;
  EXPECT_THAT(ReportTable(SampleOutcome(), options), HasSubstr("transfer   1.5s a round\n"));
}

TEST(SimulationReportTest, ALossThatWasNotReachedIsSaidSo) {
  EXPECT_THAT(ReportTable(SampleOutcome(), {.loss = 0.1}),
              HasSubstr("time to loss 0.1  not reached"));
  EXPECT_THAT(ReportTable(SampleOutcome(), {}), Not(HasSubstr("time to loss")));
}

TEST(SimulationReportTest, ManyWorkersDecisionsAndSharesAreCut) {
  simulator::Outcome outcome = SampleOutcome();
  simulator::JobOutcome& job = outcome.jobs[0];
  job.workers.resize(1000, job.workers[0]);
  job.decisions[1].plan.batch_sizes.assign(1000, 5);
  job.decisions.resize(50, job.decisions[1]);
  job.decisions_total = 1200;

  const std::string text = ReportTable(outcome, {});

  EXPECT_THAT(text, HasSubstr("... and 968 more workers; -o json has them\n"));
  EXPECT_THAT(text, HasSubstr("... and 1,180 more decisions; -o json has them\n"));
  EXPECT_THAT(text, HasSubstr(" 5,5,5,5,5,5,5,5,...  "));
}

TEST(SimulationReportTest, WordsOfOthersCannotSteerTheTerminal) {
  simulator::Outcome outcome = SampleOutcome();
  outcome.jobs[0].reason = "\x1b[2J gone";

  EXPECT_THAT(ReportTable(outcome, {}), HasSubstr("reason          [2J gone\n"));
}

TEST(SimulationReportTest, TheJsonHasEveryFigure) {
  const auto report = nlohmann::ordered_json::parse(
      ReportJson(SampleOutcome(), {.seed = 7, .loss = 1.5}), nullptr, false);

  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["events"], 5000);
  EXPECT_EQ(report["violations_total"], 1);
  EXPECT_EQ(report["violations"][0]["what"], "a plan differs");
  const auto& job = report["jobs"][0];
  EXPECT_EQ(job["name"], "demo-1");
  EXPECT_EQ(job["state"], "succeeded");
  EXPECT_EQ(job["loss"], 1.5);
  EXPECT_EQ(job["seconds_to_loss"], 50);
  EXPECT_EQ(job["samples_per_second"], 960);
  EXPECT_TRUE(job["validation_loss"].is_null());
  ASSERT_EQ(job["validation"].size(), 2u);
  EXPECT_EQ(job["validation"][1]["rounds"], 20);
  EXPECT_EQ(job["validation"][1]["seconds"], 50);
  EXPECT_EQ(job["validation"][1]["samples"], 128);
  EXPECT_EQ(job["validation"][1]["loss"], 1.25);
  EXPECT_EQ(job["workers"][1]["compute_seconds"], 100);
  EXPECT_EQ(job["decisions"][1]["batch_sizes"], std::vector<int>({48, 16}));
  EXPECT_EQ(job["decisions"][1]["reason"], "b is \"slow\"");
}

TEST(SimulationReportTest, ChoicesAreShownWhereTheyAreNotTheDefaults) {
  simulator::Outcome outcome = SampleOutcome();
  policies::Plan& plan = outcome.jobs[0].decisions[1].plan;
  plan.synchronization = policies::Synchronization::kPeriodic;
  plan.period = 8;

  EXPECT_THAT(ReportTable(outcome, {}),
              HasSubstr("PLAN  BATCH  CHOICES                               REASON\n"
                        "4.0s     0      1     32,32  every_step, average, constant, dense  first "
                        "plan\n"
                        "30s      40     2     48,16  periodic 8, average, constant, dense  b is"));
  const auto report = nlohmann::json::parse(ReportJson(outcome, {}));
  EXPECT_EQ(report["jobs"][0]["decisions"][1]["synchronization"], "periodic");
  EXPECT_EQ(report["jobs"][0]["decisions"][1]["period"], 8);
}

TEST(SimulationReportTest, TheJsonHasTheDecisionsOnRecord) {
  simulator::Outcome outcome = SampleOutcome();
  outcome.jobs[0].records = {{.plan_version = 2,
                              .axis = policies::Axis::kBatch,
                              .round = 39,
                              .seconds = 26.5,
                              .from = "32,32",
                              .to = "48,16",
                              .inputs = {{.name = "speed", .value = 3, .unit = "samples/s"}},
                              .metric = "samples/s",
                              .predicted_gain = 0.25,
                              .alternatives = {{.value = "40,24", .predicted_gain = 0.1}},
                              .reason = "b is slow",
                              .measured_gain = 0.2},
                             {.plan_version = 3, .axis = policies::Axis::kAggregation}};

  const auto records = nlohmann::json::parse(ReportJson(outcome, {}))["jobs"][0]["records"];

  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["axis"], "batch");
  EXPECT_EQ(records[0]["inputs"][0]["unit"], "samples/s");
  EXPECT_EQ(records[0]["alternatives"][0]["predicted_gain"], 0.1);
  EXPECT_EQ(records[0]["measured_gain"], 0.2);
  EXPECT_TRUE(records[1]["measured_gain"].is_null());
}

TEST(SimulationReportTest, KeysOfTheJsonKeepTheirOrder) {
  const auto report =
      nlohmann::ordered_json::parse(ReportJson(SampleOutcome(), {}), nullptr, false);
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items()) keys.push_back(key);

  EXPECT_THAT(keys, testing::ElementsAre("seed", "seconds", "events", "messages", "faults", "jobs",
                                         "violations_total", "violations"));
}

TEST(SimulationReportTest, NumbersThatAreNotFiniteAreNullInTheJson) {
  simulator::Outcome outcome = SampleOutcome();
  outcome.jobs[0].train_loss = NAN;
  outcome.jobs[0].validation_loss = INFINITY;

  const auto report = nlohmann::json::parse(ReportJson(outcome, {}), nullptr, false);

  ASSERT_TRUE(report.is_object());
  EXPECT_TRUE(report["jobs"][0]["train_loss"].is_null());
  EXPECT_TRUE(report["jobs"][0]["validation_loss"].is_null());
}

}  // namespace
}  // namespace tactus::client
