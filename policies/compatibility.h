// Which methods of training go together, and why not where they do not.
//
// Two tables and nothing else decides: the matrix of methods, for those that are here and those to
// come, and the rules between the choices of a job that follow from it. Submission asks about the
// choices of a job file, the planner about each plan.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policies/plan.h"

namespace tactus::policies {

// In the order of the matrix.
enum class Method {
  kGsSgd,       // gradients are sketched, the sketches summed
  kDqSgd,       // gradients are quantised to so many bits as their noise allows
  kAdaComp,     // gradients are sent as ternary residuals, bin by bin
  kLsgd,        // workers are pulled towards the best of them
  kDecentLam,   // workers average with their neighbours alone
  kHfta,        // several jobs train as one fused array
  kOneBitLamb,  // LAMB with the momentum sent as signs
  kCraig,       // a weighted subset of the samples stands for all
  kAdasum,      // gradients are combined by pairs, as their angle says
  kAdaScale,    // the learning rate is multiplied by the gain of the larger batch
  kAdaComm,     // parameters are averaged every so many steps, fewer as the loss falls
  kAbsSgd,      // gradients travel while the next, elastic batch is computed
};
inline constexpr int kMethods = 12;

enum class Relation {
  kFree,         // they compose as they are
  kConditional,  // they compose when the reason's condition is kept
  kForbidden,    // a job with both is refused
};

// How two methods go together.
struct Verdict {
  Relation relation = Relation::kFree;
  int number = 0;             // of the reason, 1 to kReasons; 0: free, there is none
  std::string_view reason{};  // static; empty when free

  friend bool operator==(const Verdict&, const Verdict&) = default;
};
inline constexpr int kReasons = 47;

// Symmetric. A method goes with itself.
//
// Source: design, from what each method needs of the others; memory, unverified, for DecentLaM,
// 1-bit LAMB and AdaComm.
Verdict Relate(Method a, Method b);

// The reason of a number, 1 to kReasons.
std::string_view ReasonOf(int number);

// The policies of a job by the names in its file; those of PlannerOptions.
struct Choices {
  std::string batch = "proportional";
  std::string synchronization = "every_step";
  std::string aggregation = "average";
  std::string learning_rate = "constant";
  std::string optimizer = "sgd";
  bool block_momentum = false;  // above 0
};

// Two choices that do not go together.
struct Conflict {
  std::string field{};   // of the job file, the one to change first: "adapt.batch.policy"
  std::string other{};   // the field that it contradicts
  std::string reason{};  // a sentence for the user, with both values and what to do instead

  friend bool operator==(const Conflict&, const Conflict&) = default;
};

// All conflicts of a job's choices, in a fixed order; none when it can be run. `auto` conflicts
// only where no value that it stands for fits. Names that are unknown conflict with nothing.
std::vector<Conflict> ConflictsOf(const Choices& choices);

// Whether a group may run under the plan with this optimizer (policies/optimizers.h). How a period
// is found is no part of a plan: that adacomm finds it for sgd alone is a rule on choices.
bool Allowed(const Plan& plan, std::string_view optimizer);

}  // namespace tactus::policies
