// A folder for what a target writes: in memory where the system has such a place.

#pragma once

#include <string>

namespace tactus::fuzz {

// Made at the first call, removed when the process ends in order.
const std::string& ScratchFolder();

}  // namespace tactus::fuzz
