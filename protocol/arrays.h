// What coordinators and agents both know of arrays: jobs whose passes one process computes at once.

#pragma once

#include <cstddef>

namespace tactus::protocol {

// Of one array on one device, at most, and so in one process.
inline constexpr std::size_t kArrayJobsMax = 16;

}  // namespace tactus::protocol
