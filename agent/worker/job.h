// A job as a worker needs it: the parsed specification, defaults filled in.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/data/dataset.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/stop_rule.h"
#include "agent/model/model.h"
#include "policies/learning_rate.h"

namespace tactus::worker {

// Defaults are those of proto/tactus/v1/spec.proto; the coordinator has checked the ranges.
struct WorkerJob {
  std::string name;
  model::ModelOptions model;
  data::DataOptions data;
  std::uint64_t validation_samples_max = 10000;
  engine::OptimizerOptions optimizer;
  policies::LearningRateOptions learning_rate;
  std::optional<double> clip_norm;
  double block_momentum = 0;
  bool keep_local_momentum = true;
  engine::StopOptions stop;
  std::uint32_t per_worker = 32;  // samples of a step, to begin with
  std::uint32_t micro_batch = 64;
  std::uint64_t seed = 1;
  std::optional<Duration> snapshots_every;  // of training
};

}  // namespace tactus::worker
