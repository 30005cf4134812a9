// A job's specification as the round engine takes it.

#pragma once

#include "agent/engine/round_engine.h"
#include "coordinator/spec/resolve.h"

namespace tactus::spec {

// The options of every member's engine: what a worker makes of the same specification
// (agent/worker/job_json.h). train_samples is left as it is by default: only who has the data knows
// it. Requires: the specification has no violations.
engine::EngineOptions EngineOptionsOf(const ResolvedSpec& spec);

// The optimizer's learning rate: where the schedule begins.
double LearningRateOf(const ResolvedSpec& spec);

}  // namespace tactus::spec
