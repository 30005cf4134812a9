// A plan as the API has it, as a list.

#pragma once

#include <vector>

#include "policies/axes.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::client {

// The rows that policies/axes.h makes of a plan. They refer to the plan, and to texts of another
// program: show them printable.
std::vector<policies::PlanRow> RowsOf(const v1::Plan& plan);

}  // namespace tactus::client
