// Specifications as a coordinator resolves them, for tests that say only what they are about.

#pragma once

#include "nlohmann/json.hpp"

namespace tactus::worker {

// The specification with all that a worker must be told; what `given`, a tactus.v1.JobSpec in JSON,
// leaves out is as small jobs have it.
nlohmann::json ResolvedSpec(const nlohmann::json& given);

}  // namespace tactus::worker
