// A job as a worker needs it: what it reads of the resolved specification.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/data/dataset.h"
#include "agent/engine/round_engine.h"
#include "agent/model/model.h"
#include "base/time.h"

namespace tactus::worker {

// The coordinator has checked the ranges and filled in the defaults.
struct WorkerJob {
  std::string name;
  model::ModelOptions model;
  std::string weights;  // path of what training begins with; empty: as the model has them
  data::DataOptions data;
  engine::EngineOptions engine;               // but for what the data and the group say
  std::uint32_t per_worker = 0;               // samples of a step, to begin with
  std::optional<Duration> snapshots_every;    // of training
  std::optional<Duration> checkpoints_every;  // likewise; nothing: as it seems best
};

}  // namespace tactus::worker
