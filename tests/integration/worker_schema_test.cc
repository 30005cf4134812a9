// The worker reads a specification's proto3 JSON by hand; here it reads what protobuf writes, and
// takes the same from it as the reading where protobuf is at hand.

#include <google/protobuf/util/json_util.h>

#include <string>
#include <variant>

#include "agent/worker/messages.h"
#include "coordinator/spec/engine_options.h"
#include "gtest/gtest.h"
#include "tactus/v1/worker.pb.h"

namespace tactus {
namespace {

using google::protobuf::util::MessageToJsonString;

worker::ToWorker Receive(const v1::ToWorker& message) {
  std::string line;
  EXPECT_TRUE(MessageToJsonString(message, &line).ok());
  auto received = worker::ParseToWorker(line);
  EXPECT_TRUE(received.ok()) << received.status();
  return *std::move(received);
}

TEST(WorkerSchemaTest, AStartSurvivesTheWay) {
  v1::ToWorker message;
  v1::Start& start = *message.mutable_start();
  start.set_job_id("shakespeare-1");
  start.set_worker_id(1ull << 50);
  start.set_emulated_speed(0.5);
  v1::JobSpec& spec = *start.mutable_spec();
  spec.set_seed(1ull << 63);
  spec.mutable_model()->set_builtin("resnet18");
  spec.mutable_model()->mutable_options()->set_classes(100);
  spec.mutable_model()->set_precision(v1::PRECISION_BFLOAT16);
  spec.mutable_data()->mutable_idx()->set_inputs("/x.gz");
  spec.mutable_data()->mutable_idx()->set_targets("/y.gz");
  spec.mutable_data()->set_validation_fraction(0);
  spec.mutable_optimizer()->mutable_sgd()->set_nesterov(true);
  spec.mutable_stop()->mutable_time()->set_seconds(1800);
  spec.mutable_stop()->mutable_time()->set_nanos(250000000);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_PROPORTIONAL);
  spec.mutable_adapt()->mutable_batch()->set_micro_batch(32);

  const auto received = std::get<worker::StartMessage>(Receive(message));

  EXPECT_EQ(received.job_id, "shakespeare-1");
  EXPECT_EQ(received.worker_id, 1ull << 50);
  EXPECT_EQ(received.emulated_speed, 0.5);
  EXPECT_EQ(received.job.seed, 1ull << 63);
  EXPECT_EQ(received.job.model.builtin, "resnet18");
  EXPECT_EQ(received.job.model.classes, 100u);
  EXPECT_EQ(received.job.model.precision, model::Precision::kBfloat16);
  EXPECT_EQ(received.job.data.idx->targets, "/y.gz");
  EXPECT_EQ(received.job.data.validation_fraction, 0);
  EXPECT_TRUE(std::get<engine::SgdOptions>(received.job.optimizer).nesterov);
  EXPECT_EQ(received.job.stop.time, Seconds(1800.25));
  EXPECT_EQ(received.job.micro_batch, 32u);
}

void ExpectEqual(const engine::SgdOptions& a, const engine::SgdOptions& b) {
  EXPECT_EQ(a.learning_rate, b.learning_rate);
  EXPECT_EQ(a.momentum, b.momentum);
  EXPECT_EQ(a.weight_decay, b.weight_decay);
  EXPECT_EQ(a.nesterov, b.nesterov);
}

void ExpectEqual(const engine::AdamOptions& a, const engine::AdamOptions& b) {
  EXPECT_EQ(a.learning_rate, b.learning_rate);
  EXPECT_EQ(a.beta1, b.beta1);
  EXPECT_EQ(a.beta2, b.beta2);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.weight_decay, b.weight_decay);
  EXPECT_EQ(a.decoupled, b.decoupled);
}

void ExpectEqual(const engine::LambOptions& a, const engine::LambOptions& b) {
  EXPECT_EQ(a.learning_rate, b.learning_rate);
  EXPECT_EQ(a.beta1, b.beta1);
  EXPECT_EQ(a.beta2, b.beta2);
  EXPECT_EQ(a.epsilon, b.epsilon);
  EXPECT_EQ(a.weight_decay, b.weight_decay);
  EXPECT_EQ(a.ratio_min, b.ratio_min);
  EXPECT_EQ(a.ratio_max, b.ratio_max);
}

void ExpectEqual(const policies::LearningRateOptions& a, const policies::LearningRateOptions& b) {
  EXPECT_EQ(a.base_batch, b.base_batch);
  EXPECT_EQ(a.schedule.base, b.schedule.base);
  EXPECT_EQ(a.schedule.warmup_steps, b.schedule.warmup_steps);
  EXPECT_EQ(a.schedule.shape, b.schedule.shape);
  EXPECT_EQ(a.schedule.boundaries, b.schedule.boundaries);
  EXPECT_EQ(a.schedule.factor, b.schedule.factor);
  EXPECT_EQ(a.schedule.steps, b.schedule.steps);
  EXPECT_EQ(a.schedule.final_rate, b.schedule.final_rate);
}

// What a worker takes from a spec is what EngineOptionsOf makes of it.
template <typename OptimizerOptions>
void ExpectSameEngine(const v1::JobSpec& spec) {
  const spec::ResolvedSpec resolved = spec::Resolve(spec);
  v1::ToWorker message;
  *message.mutable_start()->mutable_spec() = *resolved;

  const worker::WorkerJob job = std::get<worker::StartMessage>(Receive(message)).job;
  const engine::EngineOptions options = spec::EngineOptionsOf(resolved);

  EXPECT_EQ(options.seed, job.seed);
  EXPECT_EQ(options.micro_batch, job.micro_batch);
  EXPECT_EQ(options.clip_norm, job.clip_norm);
  EXPECT_EQ(options.stop.train_loss, job.stop.train_loss);
  EXPECT_EQ(options.stop.epochs, job.stop.epochs);
  EXPECT_EQ(options.stop.rounds, job.stop.rounds);
  EXPECT_EQ(options.stop.time, job.stop.time);
  EXPECT_EQ(options.stop.steps, job.stop.steps);
  EXPECT_EQ(options.block_momentum, job.block_momentum);
  EXPECT_EQ(options.keep_local_momentum, job.keep_local_momentum);
  ExpectEqual(options.learning_rate, job.learning_rate);
  ASSERT_TRUE(std::holds_alternative<OptimizerOptions>(options.optimizer));
  ASSERT_TRUE(std::holds_alternative<OptimizerOptions>(job.optimizer));
  ExpectEqual(std::get<OptimizerOptions>(options.optimizer),
              std::get<OptimizerOptions>(job.optimizer));
}

v1::JobSpec FullSpec() {
  v1::JobSpec spec;
  spec.set_seed(7);
  spec.mutable_optimizer()->set_clip_norm(2.5);
  spec.mutable_stop()->set_train_loss(1.25);
  spec.mutable_stop()->set_epochs(3);
  spec.mutable_stop()->set_rounds(1ull << 40);
  spec.mutable_stop()->mutable_time()->set_seconds(90);
  spec.mutable_stop()->mutable_time()->set_nanos(500000000);
  spec.mutable_adapt()->mutable_batch()->set_micro_batch(16);
  return spec;
}

void ExpectSameMomenta(v1::SynchronizationPolicy policy) {
  v1::JobSpec spec = FullSpec();
  v1::SynchronizationAxis& axis = *spec.mutable_adapt()->mutable_synchronization();
  axis.set_policy(policy);
  for (int momentum = v1::LocalMomentum_MIN; momentum <= v1::LocalMomentum_MAX; ++momentum) {
    axis.set_local_momentum(static_cast<v1::LocalMomentum>(momentum));
    axis.clear_block_momentum();
    ExpectSameEngine<engine::SgdOptions>(spec);
    axis.set_block_momentum(0.5);
    ExpectSameEngine<engine::SgdOptions>(spec);
  }
}

void SetAll(v1::Adam* adam) {
  adam->set_learning_rate(0.01);
  adam->set_beta1(0.8);
  adam->set_beta2(0.95);
  adam->set_epsilon(1e-6);
  adam->set_weight_decay(0.25);
}

TEST(WorkerSchemaTest, WorkersAndSimulationsTakeTheSameEngineOptionsFromASpec) {
  ExpectSameEngine<engine::SgdOptions>(v1::JobSpec());

  v1::JobSpec sgd = FullSpec();
  sgd.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5);
  sgd.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  sgd.mutable_optimizer()->mutable_sgd()->set_weight_decay(0.125);
  sgd.mutable_optimizer()->mutable_sgd()->set_nesterov(true);
  ExpectSameEngine<engine::SgdOptions>(sgd);

  v1::JobSpec adam = FullSpec();
  SetAll(adam.mutable_optimizer()->mutable_adam());
  ExpectSameEngine<engine::AdamOptions>(adam);

  v1::JobSpec adamw = FullSpec();
  SetAll(adamw.mutable_optimizer()->mutable_adamw());
  ExpectSameEngine<engine::AdamOptions>(adamw);
}

TEST(WorkerSchemaTest, EveryScheduleIsTheSameForWorkersAndSimulations) {
  v1::JobSpec step = FullSpec();
  step.mutable_stop()->set_steps(0.1);
  step.mutable_adapt()->mutable_batch()->set_per_worker(17);
  v1::Schedule& schedule = *step.mutable_adapt()->mutable_learning_rate()->mutable_schedule();
  schedule.set_warmup_steps(5);
  schedule.mutable_step()->add_boundaries(1ull << 60);
  schedule.mutable_step()->set_factor(0.5);
  ExpectSameEngine<engine::SgdOptions>(step);

  v1::JobSpec cosine = FullSpec();
  v1::LearningRateAxis& rate = *cosine.mutable_adapt()->mutable_learning_rate();
  rate.set_base_batch(99);
  rate.mutable_schedule()->mutable_cosine()->set_steps(1ull << 60);
  rate.mutable_schedule()->mutable_cosine()->set_final_rate(0.001);
  ExpectSameEngine<engine::SgdOptions>(cosine);
}

TEST(WorkerSchemaTest, EveryMomentumIsTheSameForWorkersAndSimulations) {
  for (int policy = v1::SynchronizationPolicy_MIN; policy <= v1::SynchronizationPolicy_MAX;
       ++policy)
    ExpectSameMomenta(static_cast<v1::SynchronizationPolicy>(policy));
}

TEST(WorkerSchemaTest, LambIsTheSameForWorkersAndSimulations) {
  v1::JobSpec lamb = FullSpec();
  v1::Lamb& options = *lamb.mutable_optimizer()->mutable_lamb();
  ExpectSameEngine<engine::LambOptions>(lamb);

  options.set_learning_rate(0.01);
  options.set_beta1(0.8);
  options.set_beta2(0.95);
  options.set_epsilon(1e-7);
  options.set_weight_decay(0.25);
  options.set_ratio_min(0.5);
  options.set_ratio_max(2);
  ExpectSameEngine<engine::LambOptions>(lamb);
}

TEST(WorkerSchemaTest, AdamsDefaultsAreTheSameForWorkersAndSimulations) {
  v1::JobSpec spec;
  spec.mutable_optimizer()->mutable_adam();
  ExpectSameEngine<engine::AdamOptions>(spec);

  spec.mutable_optimizer()->mutable_adamw();
  ExpectSameEngine<engine::AdamOptions>(spec);
}

TEST(WorkerSchemaTest, WhatConcernsTheQueueSurvivesTheWay) {
  v1::ToWorker start;
  v1::JobSpec& spec = *start.mutable_start()->mutable_spec();
  spec.set_priority(-3);
  (*spec.mutable_workers()->mutable_selector())["gpu"] = "h200";
  spec.mutable_workers()->add_tolerations("spot");
  spec.mutable_adapt()->add_frozen("batch");

  EXPECT_TRUE(std::holds_alternative<worker::StartMessage>(Receive(start)));
}

}  // namespace
}  // namespace tactus
