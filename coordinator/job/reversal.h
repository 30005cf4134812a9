// A decision that a user takes back: whether that can be, as far as a job's record tells.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/job/records.h"
#include "policies/decision.h"

namespace tactus::job {

// The same devices by rank, whatever processes run on them.
bool SameDevices(const std::vector<MemberRecord>& one, const std::vector<MemberRecord>& other);

// Why the decision cannot be taken back, a clause with what was found and what is allowed; empty:
// the record knows of no reason. in_force: the version of the plan that all members run.
std::string WhyNotReverted(const JobRecord& record, const policies::Decision& decision,
                           std::uint64_t in_force);

// The axis stays as it is from now on, if it did not already.
void Freeze(JobSettings& settings, policies::Axis axis);

}  // namespace tactus::job
