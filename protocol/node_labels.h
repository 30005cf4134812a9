// Labels that agents give their nodes themselves.

#pragma once

namespace tactus::protocol {

// "true" where jobs may be programs: which those that are select by it.
inline constexpr const char* kProgramsLabel = "tactus/programs";

}  // namespace tactus::protocol
