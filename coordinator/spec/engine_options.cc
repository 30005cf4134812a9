#include "coordinator/spec/engine_options.h"

#include <chrono>

namespace tactus::spec {
namespace {

engine::SgdOptions SgdOf(const v1::Sgd& sgd) {
  engine::SgdOptions options;
  if (sgd.has_learning_rate()) options.learning_rate = sgd.learning_rate();
  if (sgd.has_momentum()) options.momentum = sgd.momentum();
  if (sgd.has_weight_decay()) options.weight_decay = sgd.weight_decay();
  options.nesterov = sgd.nesterov();
  return options;
}

engine::AdamOptions AdamOf(const v1::Adam& adam) {
  engine::AdamOptions options;
  if (adam.has_learning_rate()) options.learning_rate = adam.learning_rate();
  if (adam.has_beta1()) options.beta1 = adam.beta1();
  if (adam.has_beta2()) options.beta2 = adam.beta2();
  if (adam.has_epsilon()) options.epsilon = adam.epsilon();
  if (adam.has_weight_decay()) options.weight_decay = adam.weight_decay();
  return options;
}

engine::AdamOptions AdamWOf(const v1::Adam& adam) {
  engine::AdamOptions options = AdamOf(adam);
  options.decoupled = true;
  if (!adam.has_weight_decay()) options.weight_decay = 0.01;
  return options;
}

engine::OptimizerOptions OptimizerOf(const v1::Optimizer& optimizer) {
  if (optimizer.has_adam()) return AdamOf(optimizer.adam());
  if (optimizer.has_adamw()) return AdamWOf(optimizer.adamw());
  return SgdOf(optimizer.sgd());
}

engine::StopOptions StopOf(const v1::Stop& stop) {
  engine::StopOptions options;
  if (stop.has_train_loss()) options.train_loss = stop.train_loss();
  if (stop.has_epochs()) options.epochs = stop.epochs();
  if (stop.has_rounds()) options.rounds = stop.rounds();
  if (stop.has_time()) {
    options.time = std::chrono::seconds(stop.time().seconds()) + Duration(stop.time().nanos());
  }
  return options;
}

}  // namespace

engine::EngineOptions EngineOptionsOf(const v1::JobSpec& spec) {
  engine::EngineOptions options;
  if (spec.has_seed()) options.seed = spec.seed();
  const v1::BatchAxis& batch = spec.adapt().batch();
  if (batch.has_micro_batch()) options.micro_batch = batch.micro_batch();
  options.optimizer = OptimizerOf(spec.optimizer());
  if (spec.optimizer().has_clip_norm()) options.clip_norm = spec.optimizer().clip_norm();
  options.stop = StopOf(spec.stop());
  return options;
}

}  // namespace tactus::spec
