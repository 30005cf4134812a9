#include "coordinator/spec/engine_options.h"

#include <chrono>
#include <variant>

#include "policies/batch_policy.h"

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

engine::LambOptions LambOf(const v1::Lamb& lamb) {
  engine::LambOptions options;
  if (lamb.has_learning_rate()) options.learning_rate = lamb.learning_rate();
  if (lamb.has_beta1()) options.beta1 = lamb.beta1();
  if (lamb.has_beta2()) options.beta2 = lamb.beta2();
  if (lamb.has_epsilon()) options.epsilon = lamb.epsilon();
  if (lamb.has_weight_decay()) options.weight_decay = lamb.weight_decay();
  if (lamb.has_ratio_min()) options.ratio_min = lamb.ratio_min();
  if (lamb.has_ratio_max()) options.ratio_max = lamb.ratio_max();
  return options;
}

engine::OptimizerOptions OptimizerOf(const v1::Optimizer& optimizer) {
  if (optimizer.has_lamb()) return LambOf(optimizer.lamb());
  if (optimizer.has_adam()) return AdamOf(optimizer.adam());
  if (optimizer.has_adamw()) return AdamWOf(optimizer.adamw());
  return SgdOf(optimizer.sgd());
}

engine::StopOptions StopOf(const v1::Stop& stop) {
  engine::StopOptions options;
  if (stop.has_train_loss()) options.train_loss = stop.train_loss();
  if (stop.has_epochs()) options.epochs = stop.epochs();
  if (stop.has_rounds()) options.rounds = stop.rounds();
  if (stop.has_steps()) options.steps = stop.steps();
  if (stop.has_time()) {
    options.time = std::chrono::seconds(stop.time().seconds()) + Duration(stop.time().nanos());
  }
  return options;
}

policies::Schedule ScheduleOf(const v1::Schedule& proto, double base) {
  using Shape = policies::Schedule::Shape;
  policies::Schedule schedule{.base = base, .warmup_steps = proto.warmup_steps()};
  if (proto.has_step()) {
    schedule.shape = Shape::kStep;
    schedule.boundaries.assign(proto.step().boundaries().begin(), proto.step().boundaries().end());
    if (proto.step().has_factor()) schedule.factor = proto.step().factor();
  } else if (proto.has_cosine()) {
    schedule.shape = Shape::kCosine;
    schedule.steps = proto.cosine().steps();
    schedule.final_rate = proto.cosine().final_rate();
  }
  return schedule;
}

bool IsAdacomm(const v1::SynchronizationAxis& axis) {
  return axis.policy() == v1::SYNCHRONIZATION_POLICY_ADACOMM;
}

double BlockMomentumOf(const v1::SynchronizationAxis& axis) {
  if (axis.has_block_momentum()) return axis.block_momentum();
  return IsAdacomm(axis) ? engine::kAdacommBlockMomentum : 0;
}

bool KeepsLocalMomentum(const v1::SynchronizationAxis& axis) {
  if (axis.local_momentum() == v1::LOCAL_MOMENTUM_UNSPECIFIED) return !IsAdacomm(axis);
  return axis.local_momentum() == v1::LOCAL_MOMENTUM_KEEP;
}

}  // namespace

double LearningRateOf(const v1::Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.learning_rate; },
                    OptimizerOf(optimizer));
}

std::uint32_t BaseBatchOf(const v1::Adapt& adapt) {
  if (adapt.learning_rate().has_base_batch()) return adapt.learning_rate().base_batch();
  return adapt.batch().has_per_worker() ? adapt.batch().per_worker()
                                        : policies::BatchOptions{}.per_worker;
}

engine::EngineOptions EngineOptionsOf(const v1::JobSpec& spec) {
  engine::EngineOptions options;
  if (spec.has_seed()) options.seed = spec.seed();
  const v1::BatchAxis& batch = spec.adapt().batch();
  if (batch.has_micro_batch()) options.micro_batch = batch.micro_batch();
  options.optimizer = OptimizerOf(spec.optimizer());
  if (spec.optimizer().has_clip_norm()) options.clip_norm = spec.optimizer().clip_norm();
  options.learning_rate = {.schedule = ScheduleOf(spec.adapt().learning_rate().schedule(),
                                                  LearningRateOf(spec.optimizer())),
                           .base_batch = BaseBatchOf(spec.adapt())};
  options.block_momentum = BlockMomentumOf(spec.adapt().synchronization());
  options.keep_local_momentum = KeepsLocalMomentum(spec.adapt().synchronization());
  options.stop = StopOf(spec.stop());
  return options;
}

}  // namespace tactus::spec
