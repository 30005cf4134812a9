// The policies of each axis by the names that a job file uses.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/axis_policy.h"
#include "policies/planner.h"

namespace tactus::policies {

// Makes the policy that the options name for the axis. Null for an unknown name; PolicyNames()
// lists the known ones, sorted.
std::unique_ptr<AxisPolicy> MakeAxisPolicy(Axis axis, const PlannerOptions& options);
std::vector<std::string> PolicyNames(Axis axis);

}  // namespace tactus::policies
