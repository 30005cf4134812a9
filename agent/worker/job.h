// A job as a worker needs it: what it reads of the resolved specification.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/data/dataset.h"
#include "agent/engine/round_engine.h"
#include "agent/model/model.h"
#include "base/fields.h"
#include "base/time.h"

namespace tactus::worker {

// Whose parameters are the job's result.
enum class JobResult { kLast, kBest };

constexpr std::string_view NameOf(JobResult result) {
  return result == JobResult::kBest ? "best" : "last";
}

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
  JobResult result = JobResult::kLast;
};

// Why the job cannot do without validation data: the field that asks for it, as in the job file;
// empty: it can.
inline std::string AskingForValidation(const WorkerJob& job) {
  const engine::ValidationOptions& validation = job.engine.validation;
  if (job.engine.stop.validation_loss) return "stop.validation_loss";
  if (job.engine.stop.patience) return "stop.patience";
  if (job.result == JobResult::kBest) return "result";
  const bool often = validation.every || validation.epochs || validation.rounds;
  return often ? "validation" : "";
}

}  // namespace tactus::worker

namespace tactus {

template <>
inline constexpr int kEnumMax<worker::JobResult> = static_cast<int>(worker::JobResult::kBest);

}  // namespace tactus
