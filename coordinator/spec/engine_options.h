// A job's specification as the round engine takes it.

#pragma once

#include "agent/engine/round_engine.h"
#include "coordinator/spec/resolve.h"

namespace tactus::spec {

// The options of every member's engine, by the list that workers read theirs by. What only the data
// and the group know is left as it is.
engine::EngineOptions EngineOptionsOf(const ResolvedSpec& spec);

}  // namespace tactus::spec
