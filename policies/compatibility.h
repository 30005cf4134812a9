// Which choices of a job go together, and why not where they do not.
//
// The rows of policies/catalogue.h say what each policy excludes, and nothing else decides.
// Submission asks about the choices of a job file, the planner about each plan.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/plan.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// Two choices that do not go together.
struct Conflict {
  std::string field{};   // of the job file, the one to change first: "adapt.batch.policy"
  std::string other{};   // the field that it contradicts
  std::string reason{};  // a sentence for the user, with both values and what to do instead

  friend bool operator==(const Conflict&, const Conflict&) = default;
};

// All conflicts of a job's choices, in a fixed order; none when it can be run. `auto` takes what
// fits and conflicts with nothing, nor do names that are unknown.
std::vector<Conflict> ConflictsOf(const PlannerOptions& options);

// Of a job, beside its axes, what a plan may be in conflict with.
struct OptimizerFacts {
  std::string name = "sgd";           // of policies/optimizers.h
  double momentum = 0;                // of sgd
  std::optional<double> clip_norm{};  // EngineOptions::clip_norm
  std::string shard = "none";         // PlannerOptions::shard
  std::string mesh = "none";          // likewise
};
OptimizerFacts FactsOf(const PlannerOptions& options);

// The conflicts of what a plan has with each other and with the optimizer.
// How a period is found is no part of a plan: that adacomm finds it for sgd alone is a rule on
// choices.
std::vector<Conflict> ConflictsOf(const Plan& plan, const OptimizerFacts& optimizer);

// Whether a group may run under the plan with this optimizer: there are none.
bool Allowed(const Plan& plan, const OptimizerFacts& optimizer);

}  // namespace tactus::policies
