#include "coordinator/spec/engine_options.h"

#include <chrono>
#include <variant>

namespace tactus::spec {
namespace {

engine::SgdOptions SgdOf(const v1::Sgd& sgd) {
  return {.learning_rate = sgd.learning_rate(),
          .momentum = sgd.momentum(),
          .weight_decay = sgd.weight_decay(),
          .nesterov = sgd.nesterov()};
}

engine::AdamOptions AdamOf(const v1::Adam& adam, bool decoupled) {
  return {.learning_rate = adam.learning_rate(),
          .beta1 = adam.beta1(),
          .beta2 = adam.beta2(),
          .epsilon = adam.epsilon(),
          .weight_decay = adam.weight_decay(),
          .decoupled = decoupled};
}

engine::LambOptions LambOf(const v1::Lamb& lamb) {
  return {.learning_rate = lamb.learning_rate(),
          .beta1 = lamb.beta1(),
          .beta2 = lamb.beta2(),
          .epsilon = lamb.epsilon(),
          .weight_decay = lamb.weight_decay(),
          .ratio_min = lamb.ratio_min(),
          .ratio_max = lamb.ratio_max()};
}

engine::OptimizerOptions OptimizerOf(const v1::Optimizer& optimizer) {
  if (optimizer.has_lamb()) return LambOf(optimizer.lamb());
  if (optimizer.has_adam()) return AdamOf(optimizer.adam(), false);
  if (optimizer.has_adamw()) return AdamOf(optimizer.adamw(), true);
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
    schedule.factor = proto.step().factor();
  } else if (proto.has_cosine()) {
    schedule.shape = Shape::kCosine;
    schedule.steps = proto.cosine().steps();
    schedule.final_rate = proto.cosine().final_rate();
  }
  return schedule;
}

}  // namespace

double LearningRateOf(const ResolvedSpec& spec) {
  return std::visit([](const auto& options) { return options.learning_rate; },
                    OptimizerOf(spec->optimizer()));
}

engine::EngineOptions EngineOptionsOf(const ResolvedSpec& spec) {
  const v1::Adapt& adapt = spec->adapt();
  const v1::SynchronizationAxis& synchronization = adapt.synchronization();
  engine::EngineOptions options;
  options.seed = spec->seed();
  options.micro_batch = adapt.batch().micro_batch();
  options.optimizer = OptimizerOf(spec->optimizer());
  if (spec->optimizer().has_clip_norm()) options.clip_norm = spec->optimizer().clip_norm();
  options.learning_rate = {
      .schedule = ScheduleOf(adapt.learning_rate().schedule(), LearningRateOf(spec)),
      .base_batch = adapt.learning_rate().base_batch()};
  options.block_momentum = synchronization.block_momentum();
  options.keep_local_momentum = synchronization.local_momentum() != v1::LOCAL_MOMENTUM_RESET;
  options.stop = StopOf(spec->stop());
  return options;
}

}  // namespace tactus::spec
