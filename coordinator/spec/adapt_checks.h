// The checks of a specification's `adapt`, and what the planner is told of it.

#pragma once

#include <cstdint>

#include "coordinator/spec/field_checks.h"
#include "policies/planner.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::spec {

// Each axis by itself, the axes together (policies/compatibility.h), and the size of a round.
void CheckAdapt(const v1::JobSpec& spec, FieldChecks& checks);

// The axes and what of the optimizer the policies must know, with the defaults filled in. An enum
// value that is unknown is taken for the default.
policies::PlannerOptions PlannerOptionsOf(const v1::JobSpec& spec);

// Workers that a job may have without a round exceeding the samples that the lanes can count.
std::uint32_t WorkersOfARound(const policies::PlannerOptions& adapt);

}  // namespace tactus::spec
