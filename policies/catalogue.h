// The policies that a job file may ask for, by axis: what each is called, what it does, what it
// goes with and how it is made. Whoever lists policies walks this: the planner, the checks of a job
// file, what is told to people, the simulator's random jobs.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/axis_policy.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// What of a policy, or of an optimizer, keeps it from going with others.
enum class Trait {
  kIdleTransfer,    // nothing is computed while gradients travel
  kOwnStepLength,   // it scales the step itself, in place of a learning rate rule
  kPreconditioned,  // an optimizer whose steps do not go along the gradient
  kLateGradients,   // gradients are combined, and steps taken later
  kWholeVectors,    // what is combined is no sum, and travels dense
  kLocalSteps,      // members take steps of their own between two exchanges
  kEncoded,         // what travels is not dense
  kMeasuredNoise,   // it goes by the noise of gradients, as the norms of their sums tell it
  kFirstMoments,    // an optimizer that is not divided by a second moment
  kClipped,         // gradients are cut to a norm
  kSharded,         // the optimizer's state is cut up among the members
  kInParts,         // each member has a part of the model, and several make one replica
  kOwnParameters,   // members have parameters of their own
  kSingleSteps,     // a step of all is combined by itself, always or for a time
};

// That a policy does not go with what has the trait.
struct Exclusion {
  Trait trait{};
  bool of_memory = false;     // only where the optimizer's steps go by former gradients, too
  bool of_parts = false;      // only where members have parts of the model
  std::string_view reason{};  // a sentence for the user, with what to do instead
};

struct Policy {
  std::string_view name{};  // in a job file
  // What it does, for a person; {per_worker}, {period} and {base_batch} stand for the job's.
  std::string_view sentence{};
  std::unique_ptr<AxisPolicy> (*make)(const PlannerOptions& options) = nullptr;
  std::vector<Trait> traits{};
  std::vector<Exclusion> excludes{};
};

// In the order in which people are told of them; `auto`, which takes what goes with the rest, last.
const std::vector<Policy>& PoliciesOf(Axis axis);

// Null for an unknown name.
const Policy* FindPolicy(Axis axis, std::string_view name);

// False for an unknown name, and for `auto`.
bool HasTrait(Axis axis, std::string_view name, Trait trait);

// What the job's policy of the axis does, for a person: "gradients are combined in every step".
// Empty for an unknown policy.
std::string SentenceOf(const PlannerOptions& options, Axis axis);

// A policy's name that this version does not have.
struct UnknownPolicy {
  Axis axis = Axis::kBatch;
  std::string name{};
};
std::vector<UnknownPolicy> UnknownPolicies(const PlannerOptions& options);

}  // namespace tactus::policies
