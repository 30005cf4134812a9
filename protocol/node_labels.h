// Labels that agents give their nodes themselves.

#pragma once

namespace tactus::protocol {

// "true" where jobs may be programs: which those that are select by it.
inline constexpr const char* kProgramsLabel = "tactus/programs";

// What holds the workers of a node: "full", "off", or what its kernel and its flags leave open,
// "lacks memory user".
inline constexpr const char* kSandboxLabel = "tactus/sandbox";

}  // namespace tactus::protocol
