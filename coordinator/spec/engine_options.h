// A job's specification as the round engine takes it.

#pragma once

#include <cstdint>

#include "agent/engine/round_engine.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// The options of every member's engine, with the defaults of proto/tactus/v1/spec.proto: what a
// worker makes of the same spec (agent/worker/job_json.h). train_samples is left as it is by
// default: only who has the data knows it. Requires: SpecViolations(spec) is empty.
engine::EngineOptions EngineOptionsOf(const v1::JobSpec& spec);

// The optimizer's learning rate, or its default: where the schedule begins.
double LearningRateOf(const v1::Optimizer& optimizer);

// Samples of a step that the learning rate was chosen for.
std::uint32_t BaseBatchOf(const v1::Adapt& adapt);

}  // namespace tactus::spec
