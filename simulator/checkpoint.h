// A checkpoint of the simulated world.

#pragma once

#include <string>
#include <vector>

#include "agent/engine/engine_state.h"
#include "protocol/worker_messages.h"

namespace tactus::simulator {

using protocol::kCheckpointFile;

// What worker::Checkpoint is to a real one; learners have no buffers. Immutable once written.
struct Checkpoint {
  std::string id{};      // in the place of the content's SHA-256: 64 hexadecimal digits
  bool damaged = false;  // what is read is not what was written
  engine::EngineState state{};
  std::vector<float> parameters{};             // flat
  std::vector<engine::Residuals> residuals{};  // by rank of the group's members
};

}  // namespace tactus::simulator
