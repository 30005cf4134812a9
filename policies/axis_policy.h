// What may be adapted, one axis at a time: the contract of all policies of the planner.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "policies/decision.h"
#include "policies/memory.h"
#include "policies/observations.h"
#include "policies/plan.h"
#include "policies/prior.h"

namespace tactus::policies {

// What a policy is asked with. The references outlive the call.
struct Situation {
  const Plan& in_force;
  const Observations& seen;
  // The plan with the other axes made to follow, when such a plan may be run; else nothing.
  const std::function<std::optional<Plan>(const Plan&)>& complete;
  // Another axis has a change on trial: a second one could not be told from it.
  bool other_on_trial = false;
};

// A plan in which one axis differs from the one in force, and why. Of the decision the policy fills
// in what it knows alone: inputs, metric, predicted gain, alternatives, reason.
struct Proposal {
  Plan plan{};
  Decision decision{};
  // kBegins: the change is on trial. kUndone: it was, and left members worse than it found them.
  Trial trial = Trial::kNone;
  // What the transfer of a round is expected to become, where the change is about that: another
  // axis may choose for it in the same plan. [s]
  std::optional<double> transfer_seconds{};
};

// Decides one axis: the batch sizes, or the synchronization and its period, or the aggregation, the
// learning rate rule or the encoding. Pure and total; not thread-safe.
class AxisPolicy {
 public:
  virtual ~AxisPolicy() = default;

  // A (new) group starts: sets the axis's fields of its first plan, in which the batch sizes are
  // set before the other axes. Returns why, a sentence.
  virtual std::string Start(Plan& first, const Observations& seen) = 0;

  // After Start(): the group goes on under a plan that another made, a former coordinator or a
  // user. What was on trial is over.
  virtual void Resume(const Plan&) {}

  // Folds one worker's report in, for what Observations does not keep.
  virtual void Observe(const Report&) {}

  // Proposes another value, or leaves it. Asked after each whole round under the plan in force.
  virtual std::optional<Proposal> Decide(const Situation& situation) = 0;

  // Whether what it changed last is judged by the rounds to come.
  virtual bool OnTrial() const { return false; }

  // Fits the axis's fields to a plan in which another axis changed. Returns why, a sentence, where
  // it changes something, else nothing.
  virtual std::string Follow(Plan&, const Observations&) const { return {}; }

  // What the next job of this kind should begin with; nothing where nothing was judged.
  virtual std::optional<Prior> Learned(const Observations&) const { return std::nullopt; }

  // What it has learned, for another one of the same options; a policy that learns is a
  // RememberingPolicy.
  virtual void Remember(MemoryWriter&) const {}
  virtual void Recall(MemoryReader&) {}
};
inline void Fields(MemoryWriter& memory, const AxisPolicy& policy) { policy.Remember(memory); }
inline void Fields(MemoryReader& memory, AxisPolicy& policy) { policy.Recall(memory); }

// One whose Fields are what it has learned.
template <typename Policy>
class RememberingPolicy : public AxisPolicy {
 public:
  void Remember(MemoryWriter& memory) const final {
    memory.Write(static_cast<const Policy&>(*this));
  }
  void Recall(MemoryReader& memory) final { memory.Read(static_cast<Policy&>(*this)); }
};

// Changes the synchronization. The period is `period` within what Fits() allows the batch sizes; 1
// where a round is one step. Of kDecentlam the graph is the caller's to set.
void Synchronize(Plan& plan, Synchronization synchronization, std::uint32_t period);

}  // namespace tactus::policies
