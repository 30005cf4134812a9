// What crosses the edge between the domain and the messages, field by field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <variant>

#include "coordinator/shell/agent_conversion.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

using testing::ElementsAre;

policies::Plan FullPlan() {
  return {.version = 7,
          .synchronization = policies::Synchronization::kPeriodic,
          .period = 9,
          .aggregation = policies::Aggregation::kAdasum,
          .learning_rate_rule = policies::LearningRateRule::kLinear,
          .encoding = policies::Encoding::kBfloat16,
          .batch_sizes = {3, 0},
          .trial = policies::Trial::kUndone,
          .reason = "why"};
}

TEST(ConversionTest, APlanGoesOutByNames) {
  const v1::Plan plan = ToProto(FullPlan());

  EXPECT_EQ(plan.version(), 7u);
  EXPECT_EQ(plan.synchronization(), "periodic");
  EXPECT_EQ(plan.period(), 9u);
  EXPECT_EQ(plan.aggregation(), "adasum");
  EXPECT_EQ(plan.learning_rate_rule(), "linear");
  EXPECT_EQ(plan.encoding(), "bfloat16");
  EXPECT_THAT(plan.batch_sizes(), ElementsAre(3u, 0u));
  EXPECT_EQ(plan.trial(), "undone");
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
                                                   .transfer_seconds = 0.125,
                                                   .worker_update_seconds = {0.25, 0.5}});

  EXPECT_EQ(round.steps(), 8u);
  EXPECT_EQ(round.learning_rate(), 0.05);
  EXPECT_EQ(round.gain(), 1.5);
  EXPECT_EQ(round.progress(), 12.5);
  EXPECT_EQ(round.orthogonality(), 0.75);
  EXPECT_EQ(round.transfer_seconds(), 0.125);
  EXPECT_THAT(round.worker_update_seconds(), ElementsAre(0.25, 0.5));
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

TEST(ConversionTest, AStartGoesOutWithItsCheckpointByHash) {
  const agent::v1::ToAgent with =
      ToProto(job::StartWorker{.worker = WorkerId{5}, .job_name = "a-1", .checkpoint = "abc"});
  const agent::v1::ToAgent without =
      ToProto(job::StartWorker{.worker = WorkerId{5}, .job_name = "a-1"});

  EXPECT_EQ(with.start_worker().start().checkpoint(), "sha256:abc");
  EXPECT_EQ(without.start_worker().start().checkpoint(), "");
}

TEST(ConversionTest, AStopAndAFinishedSaySuspended) {
  const agent::v1::ToAgent stop = ToProto(
      job::SendToWorker{.worker = WorkerId{5}, .message = job::StopMessage{.suspend = true}});
  agent::v1::FromAgent message;
  message.mutable_from_worker()->mutable_message()->mutable_finished()->set_suspended(true);
  const absl::StatusOr<job::Event> event = FromProto(message, "a");

  EXPECT_TRUE(stop.to_worker().message().stop().suspend());
  ASSERT_TRUE(event.ok()) << event.status();
  const auto& said = std::get<job::WorkerSaid>(*event);
  EXPECT_TRUE(std::get<job::FinishedMessage>(said.message).suspended);
}

agent::v1::Hello ProperHello() {
  agent::v1::Hello hello;
  hello.set_node("node-1.west");
  v1::Device* device = hello.add_devices();
  device->set_name("cuda:0");
  device->set_kind(v1::DEVICE_KIND_CUDA);
  device->set_model("NVIDIA H200");
  device->set_uuid("GPU-1");
  device->set_memory_bytes(141);
  device->set_fault("the driver lost it");
  (*hello.mutable_labels())["zone"] = "west";
  hello.add_taints("gpu");
  hello.add_taints("team=vision");
  hello.add_running_workers(7);
  return hello;
}

TEST(ConversionTest, AHelloComesInWithItsTraits) {
  const absl::StatusOr<job::NodeJoined> joined = FromProto(ProperHello());

  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->node, "node-1.west");
  ASSERT_EQ(joined->devices.size(), 1u);
  EXPECT_EQ(joined->devices[0].kind, job::DeviceKind::kCuda);
  EXPECT_EQ(joined->devices[0].model, "NVIDIA H200");
  EXPECT_EQ(joined->devices[0].uuid, "GPU-1");
  EXPECT_EQ(joined->devices[0].memory_bytes, 141u);
  EXPECT_EQ(joined->devices[0].fault, "the driver lost it");
  EXPECT_EQ(joined->traits.labels, (std::map<std::string, std::string>{{"zone", "west"}}));
  EXPECT_THAT(joined->traits.taints, ElementsAre("gpu", "team=vision"));
  EXPECT_THAT(joined->running_workers, ElementsAre(WorkerId{7}));
}

TEST(ConversionTest, AHelloSaysWhetherItsAgentKnowsArraysAndHowLargeAProcessMayBe) {
  agent::v1::Hello hello = ProperHello();
  EXPECT_FALSE(FromProto(hello)->traits.arrays) << "one of before arrays";
  hello.set_arrays(true);
  hello.set_worker_memory_bytes(3 << 20);

  EXPECT_TRUE(FromProto(hello)->traits.arrays);
  EXPECT_EQ(FromProto(hello)->traits.worker_memory_bytes, 3u << 20);
}

TEST(ConversionTest, AHelloThatIsNotProperIsRefusedWithItsField) {
  struct Case {
    std::string field;
    std::function<void(agent::v1::Hello&)> spoil;
  };
  const Case cases[] = {
      {"hello.node", [](auto& hello) { hello.set_node(""); }},
      {"hello.node", [](auto& hello) { hello.set_node("Upper"); }},
      {"hello.node", [](auto& hello) { hello.set_node("a/b"); }},
      {"hello.node", [](auto& hello) { hello.set_node(std::string(64, 'a')); }},
      {"hello.agent_version", [](auto& hello) { hello.set_agent_version("1\n2"); }},
      {"hello.metrics_address",
       [](auto& hello) { hello.set_metrics_address(std::string(256, 'a')); }},
      {"hello.devices",
       [](auto& hello) {
         for (int i = 0; i < 1024; ++i) *hello.add_devices() = hello.devices(0);
       }},
      {"hello.devices[0].name", [](auto& hello) { hello.mutable_devices(0)->set_name(""); }},
      {"hello.devices[0].name", [](auto& hello) { hello.mutable_devices(0)->set_name("\x01"); }},
      {"hello.devices[0].model", [](auto& hello) { hello.mutable_devices(0)->set_model("\x7f"); }},
      {"hello.devices[0].uuid",
       [](auto& hello) { hello.mutable_devices(0)->set_uuid(std::string(256, 'u')); }},
      {"hello.devices[0].fault",
       [](auto& hello) { hello.mutable_devices(0)->set_fault(std::string(256, 'f')); }},
      {"hello.devices[0].emulated_speed",
       [](auto& hello) { hello.mutable_devices(0)->set_emulated_speed(std::nan("")); }},
      {"hello.devices[0].kind", [](auto& hello) { hello.mutable_devices(0)->clear_kind(); }},
      {"hello.labels", [](auto& hello) { (*hello.mutable_labels())[""] = "x"; }},
      {"hello.labels", [](auto& hello) { (*hello.mutable_labels())[std::string(64, 'k')] = "x"; }},
      {"hello.labels.zone", [](auto& hello) { (*hello.mutable_labels())["zone"] = "a\tb"; }},
      {"hello.labels",
       [](auto& hello) {
         for (int i = 0; i < 64; ++i) (*hello.mutable_labels())["k" + std::to_string(i)] = "";
       }},
      {"hello.taints[2]", [](auto& hello) { hello.add_taints("=x"); }},
      {"hello.taints[2]", [](auto& hello) { hello.add_taints("a=\n"); }},
      {"hello.taints",
       [](auto& hello) {
         for (int i = 0; i < 15; ++i) hello.add_taints("t");
       }},
  };
  for (const Case& one : cases) {
    agent::v1::Hello hello = ProperHello();
    one.spoil(hello);

    const absl::Status status = FromProto(hello).status();

    const std::vector<runtime::FieldViolation> violations = runtime::FieldViolations(status);
    ASSERT_EQ(violations.size(), 1u) << one.field << ": " << status;
    EXPECT_EQ(violations[0].field, one.field);
  }
}

agent::v1::FromAgent FaultOf(const std::string& device, const std::string& reason) {
  agent::v1::FromAgent message;
  agent::v1::DeviceFault* fault = message.mutable_device_faults()->add_faults();
  fault->set_device(device);
  fault->set_reason(reason);
  return message;
}

TEST(ConversionTest, FaultsComeInWithTheirNode) {
  const absl::StatusOr<job::Event> event = FromProto(FaultOf("cuda:1", "lost"), "a");

  ASSERT_TRUE(event.ok()) << event.status();
  const auto& changed = std::get<job::DeviceFaultsChanged>(*event);
  EXPECT_EQ(changed.node, "a");
  EXPECT_EQ(changed.faults, (std::map<std::string, std::string>{{"cuda:1", "lost"}}));
}

TEST(ConversionTest, FaultsThatAreNotRightAreRefusedWithTheirField) {
  agent::v1::FromAgent many;
  many.mutable_device_faults();
  for (int i = 0; i < 1025; ++i) many.mutable_device_faults()->add_faults();
  const std::pair<agent::v1::FromAgent, std::string> cases[] = {
      {FaultOf("cuda:0", ""), "device_faults.faults[0].reason"},
      {FaultOf("cuda:0", std::string(256, 'r')), "device_faults.faults[0].reason"},
      {FaultOf("cuda:0", "a\nb"), "device_faults.faults[0].reason"},
      {FaultOf(std::string(256, 'd'), "lost"), "device_faults.faults[0].device"},
      {many, "device_faults.faults"},
  };
  for (const auto& [message, field] : cases) {
    const absl::Status status = FromProto(message, "a").status();

    const std::vector<runtime::FieldViolation> violations = runtime::FieldViolations(status);
    ASSERT_EQ(violations.size(), 1u) << field << ": " << status;
    EXPECT_EQ(violations[0].field, field);
  }
}

agent::v1::FromAgent LeavingFor(const std::string& reason, std::int64_t seconds) {
  agent::v1::FromAgent message;
  message.mutable_leaving()->set_reason(reason);
  message.mutable_leaving()->mutable_within()->set_seconds(seconds);
  return message;
}

TEST(ConversionTest, AnAgentThatIsLeavingSaysWhyAndHowSoon) {
  const absl::StatusOr<job::Event> event = FromProto(LeavingFor("SIGTERM", 60), "a");

  ASSERT_TRUE(event.ok()) << event.status();
  const auto& leaving = std::get<job::NodeLeaving>(*event);
  EXPECT_EQ(leaving.node, "a");
  EXPECT_EQ(leaving.leave.reason, "SIGTERM");
  EXPECT_EQ(leaving.leave.within, Seconds(60));
}

TEST(ConversionTest, ATimeToLeaveInThatNobodyMeansIsTakenForTheNearest) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto within = [](std::int64_t seconds) {
    return std::get<job::NodeLeaving>(*FromProto(LeavingFor("r", seconds), "a")).leave.within;
  };

  EXPECT_EQ(within(kMost), Seconds(7 * 86400));
  EXPECT_EQ(within(-kMost), Seconds(0));
}

TEST(ConversionTest, ALeaveWithoutAReasonIsRefusedWithItsField) {
  agent::v1::Hello hello;
  hello.set_node("a");
  hello.mutable_leaving();
  const std::pair<absl::Status, std::string> cases[] = {
      {FromProto(LeavingFor("", 60), "a").status(), "leaving.reason"},
      {FromProto(LeavingFor(std::string(256, 'r'), 60), "a").status(), "leaving.reason"},
      {FromProto(hello).status(), "hello.leaving.reason"},
  };
  for (const auto& [status, field] : cases) {
    const std::vector<runtime::FieldViolation> violations = runtime::FieldViolations(status);
    ASSERT_EQ(violations.size(), 1u) << field << ": " << status;
    EXPECT_EQ(violations[0].field, field);
  }
}

TEST(AgentVersionTest, TheMajorVersionHasToBeTheSame) {
  EXPECT_TRUE(CheckAgentVersion("1.2.3", "1.2.9").ok());
  EXPECT_TRUE(CheckAgentVersion("1.2.3-dev", "1.3").ok());
  EXPECT_TRUE(CheckAgentVersion("1.20.3", "1.2.3").ok());
  EXPECT_TRUE(CheckAgentVersion("", "1.2.3").ok());
  for (const char* other : {"2.2.3", "11.2.3", ".2", "nonsense", "1"}) {
    const absl::Status status = CheckAgentVersion(other, "1.2.3");

    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << other;
    EXPECT_EQ(runtime::ReasonOf(status).reason, "AGENT_VERSION_MISMATCH");
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(other));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("1.2.3"));
  }
}

}  // namespace
}  // namespace tactus::service
