// What a finished job comes to, for a person. Pure.

#pragma once

#include <string>
#include <vector>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// The lines on time, samples, losses, each worker's share and speed, and use of the hardware; with
// the files of the result at `paths` (may be empty) and how to load the model. Ends with a line
// break.
std::string Summary(const v1::Job& job, const std::vector<std::string>& paths);

// Said wherever emulated speeds are used.
inline constexpr const char* kEmulationNote =
    "speeds are emulated: a micro-batch is lengthened to its CPU time x factor / speed";

// True when a worker of the job ran at an emulated speed.
bool IsEmulated(const v1::Job& job);

}  // namespace tactus::client
