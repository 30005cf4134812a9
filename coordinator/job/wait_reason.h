// Why a job waits in the queue, in words for people.

#pragma once

#include <string>

#include "coordinator/job/membership.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// Of a job that is not the next one.
inline constexpr const char* kBehindOthers = "waiting for earlier jobs in the queue";

// Of the next one: "needs 3 cpu devices; 1 free, 1 at fault, 2 known". Cordoned ones and those at
// fault are named where there are any, and how many are known where that is too few.
std::string WaitReason(const JobSettings& settings, const Membership& membership);

}  // namespace tactus::job
