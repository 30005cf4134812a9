// The rules between the fields of a specification's `adapt`, and what the planner is told of it.

#pragma once

#include <cstdint>
#include <string>

#include "coordinator/spec/field_checks.h"
#include "coordinator/spec/resolve.h"
#include "policies/planner_options.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// What holds between the fields of each axis, between the axes (policies/compatibility.h), and the
// size of a round. Of a field that was found wrong already, nothing more is said.
void CheckAdapt(const v1::JobSpec& spec, const ResolvedSpec& resolved, FieldChecks& checks);

// The job's optimizer by its name in the job file.
std::string OptimizerName(const ResolvedSpec& spec);

// The axes and what of the optimizer the policies must know. The name of a policy that is unknown
// is empty.
policies::PlannerOptions PlannerOptionsOf(const ResolvedSpec& spec);

// Workers that a job may have without a round exceeding the samples that the lanes can count.
std::uint32_t WorkersOfARound(const policies::PlannerOptions& adapt);

}  // namespace tactus::spec
