// A job as a worker needs it: the parsed specification, defaults filled in.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/data/dataset.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/stop_rule.h"
#include "agent/model/model.h"

namespace tactus::worker {

// Defaults are those of proto/tactus/v1/spec.proto; the coordinator has checked the ranges.
struct WorkerJob {
  std::string name;
  model::ModelOptions model;
  data::DataOptions data;
  std::uint64_t validation_samples_max = 10000;
  engine::OptimizerOptions optimizer;
  std::optional<double> clip_norm;
  engine::StopOptions stop;
  std::uint32_t micro_batch = 64;
  std::uint64_t seed = 1;
};

}  // namespace tactus::worker
