// What crosses the edge between the domain and the messages, field by field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "coordinator/service/agent_conversion.h"
#include "coordinator/service/job_conversion.h"

namespace tactus::service {
namespace {

using testing::ElementsAre;

policies::Plan FullPlan() {
  return {.version = 7,
          .synchronization = policies::Synchronization::kPeriodic,
          .period = 9,
          .aggregation = policies::Aggregation::kAdasum,
          .learning_rate_rule = policies::LearningRateRule::kLinear,
          .batch_sizes = {3, 0},
          .reason = "why"};
}

TEST(ConversionTest, APlanGoesOutByNames) {
  const v1::Plan plan = ToProto(FullPlan());

  EXPECT_EQ(plan.version(), 7u);
  EXPECT_EQ(plan.synchronization(), "periodic");
  EXPECT_EQ(plan.period(), 9u);
  EXPECT_EQ(plan.aggregation(), "adasum");
  EXPECT_EQ(plan.learning_rate_rule(), "linear");
  EXPECT_THAT(plan.batch_sizes(), ElementsAre(3u, 0u));
  EXPECT_EQ(plan.reason(), "why");
}

TEST(ConversionTest, AGroupGoesOutWithItsNodes) {
  const agent::v1::ToAgent message = ToProto(job::SendToWorker{
      .node = "a",
      .worker = WorkerId{5},
      .message = job::GroupMessage{
          .generation = 4, .rank = 1, .size = 3, .plan = FullPlan(), .nodes = {0, 1, 0}}});

  const v1::Group& group = message.to_worker().message().group();
  EXPECT_EQ(group.size(), 3u);
  EXPECT_EQ(group.plan().period(), 9u);
  EXPECT_THAT(group.nodes(), ElementsAre(0u, 1u, 0u));
}

TEST(ConversionTest, ARoundGoesOutWithWhatTheUpdateUsed) {
  const v1::Round round = ToProto(job::RoundRecord{.round = 3,
                                                   .steps = 8,
                                                   .learning_rate = 0.05,
                                                   .gain = 1.5,
                                                   .progress = 12.5,
                                                   .orthogonality = 0.75,
                                                   .transfer_seconds = 0.125});

  EXPECT_EQ(round.steps(), 8u);
  EXPECT_EQ(round.learning_rate(), 0.05);
  EXPECT_EQ(round.gain(), 1.5);
  EXPECT_EQ(round.progress(), 12.5);
  EXPECT_EQ(round.orthogonality(), 0.75);
  EXPECT_EQ(round.transfer_seconds(), 0.125);
}

TEST(ConversionTest, ADecisionGoesOutFieldByFieldUnderItsName) {
  const v1::Decision decision = ToProto(
      "demo-1", policies::Decision{.plan_version = 12,
                                   .axis = policies::Axis::kLearningRate,
                                   .round = 120,
                                   .seconds = 61.5,
                                   .from = "constant",
                                   .to = "adascale",
                                   .inputs = {{.name = "noise", .value = 3.5, .unit = "samples"}},
                                   .metric = "samples/s",
                                   .predicted_gain = 0.25,
                                   .alternatives = {{.value = "sqrt", .predicted_gain = 0.1}},
                                   .reason = "the batch grew",
                                   .measured_gain = 0.2});

  EXPECT_EQ(decision.name(), "projects/default/jobs/demo-1/decisions/12-learning-rate");
  EXPECT_EQ(decision.plan_version(), 12u);
  EXPECT_EQ(decision.axis(), v1::AXIS_LEARNING_RATE);
  EXPECT_EQ(decision.round(), 120u);
  EXPECT_EQ(decision.train_time().seconds(), 61);
  EXPECT_EQ(decision.train_time().nanos(), 500'000'000);
  EXPECT_EQ(decision.from(), "constant");
  EXPECT_EQ(decision.to(), "adascale");
  ASSERT_EQ(decision.inputs_size(), 1);
  EXPECT_EQ(decision.inputs(0).name(), "noise");
  EXPECT_EQ(decision.inputs(0).value(), 3.5);
  EXPECT_EQ(decision.inputs(0).unit(), "samples");
  EXPECT_EQ(decision.metric(), "samples/s");
  EXPECT_EQ(decision.predicted_gain(), 0.25);
  ASSERT_EQ(decision.alternatives_size(), 1);
  EXPECT_EQ(decision.alternatives(0).value(), "sqrt");
  EXPECT_EQ(decision.alternatives(0).predicted_gain(), 0.1);
  EXPECT_EQ(decision.reason(), "the batch grew");
  EXPECT_EQ(decision.measured_gain(), 0.2);
}

TEST(ConversionTest, ADecisionThatIsNotMeasuredHasNoMeasuredGain) {
  EXPECT_FALSE(ToProto("demo-1", policies::Decision{}).has_measured_gain());
}

TEST(ConversionTest, AReportComesInFieldByField) {
  agent::v1::FromAgent message;
  message.mutable_from_worker()->set_worker_id(5);
  v1::RoundReport& proto = *message.mutable_from_worker()->mutable_message()->mutable_report();
  proto.set_generation(4);
  proto.set_round(3);
  proto.set_steps(8);
  proto.set_transfer_seconds(0.125);
  proto.set_contributors(2);
  proto.set_samples_gradient_norm2(0.5);
  proto.set_orthogonality(0.75);
  proto.set_learning_rate(0.05);
  proto.set_gain(1.5);
  proto.set_progress(12.5);

  const absl::StatusOr<job::Event> event = FromProto(message);

  ASSERT_TRUE(event.ok()) << event.status();
  const auto& said = std::get<job::WorkerSaid>(*event);
  const policies::Report& report = std::get<job::ReportMessage>(said.message).report;
  EXPECT_EQ(report.round, 3u);
  EXPECT_EQ(report.steps, 8u);
  EXPECT_EQ(report.transfer_seconds, 0.125);
  EXPECT_EQ(report.contributors, 2u);
  EXPECT_EQ(report.samples_gradient_norm2, 0.5);
  EXPECT_EQ(report.orthogonality, 0.75);
  EXPECT_EQ(report.learning_rate, 0.05);
  EXPECT_EQ(report.gain, 1.5);
  EXPECT_EQ(report.progress, 12.5);
}

}  // namespace
}  // namespace tactus::service
