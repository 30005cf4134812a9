// Jobs that share a device: those of one array, which train in one process.

#pragma once

#include <string>

#include "coordinator/job/records.h"

namespace tactus::job {

// The label by which users say which jobs are an array.
inline constexpr const char* kArrayLabel = "array";

// Equal for jobs that may share a process: of one owner, of one array by their labels, and of one
// shape. Empty: of none, so that it shares with nobody.
std::string ArrayOf(const JobRecord& record);

}  // namespace tactus::job
