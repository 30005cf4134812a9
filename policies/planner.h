// The joint planner of one job: from what the workers saw to the next plan, with its reasons.
//
// One policy for each axis proposes, the compatibility rules are kept between them, and what was
// promised is measured afterwards.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/axis_policy.h"
#include "policies/decision.h"
#include "policies/device_values.h"
#include "policies/gain_meter.h"
#include "policies/observations.h"
#include "policies/plan.h"
#include "policies/planner_options.h"
#include "policies/prior.h"
#include "policies/replica_reports.h"

namespace tactus::policies {

// A plan and why it differs from the one before.
struct Revision {
  Plan plan{};  // version: of the plan in force + 1; left to the caller, 0, of a
                // group's first plan
  std::vector<Decision> decisions{};  // at least one, of different axes
};

// What taking a decision back comes to.
struct Undoing {
  std::optional<Revision> revision{};  // nothing: it cannot be done
  std::string refusal{};               // why not, a clause for a person; empty: it can
};

// What decides the plans of a job: the contract of whoever may do so. Pure and total; not
// thread-safe.
class PlanPolicy {
 public:
  virtual ~PlanPolicy() = default;

  // A (new) group starts; what was learned of former ranks is forgotten, what was learned of the
  // loss is kept.
  virtual Revision Start(const StartingGroup& group) = 0;

  // All that it has learned, as bytes for Recall().
  virtual std::string Memory() const = 0;

  // First of all: takes over what another policy of the same options, but for what they freeze, had
  // learned. members: of the group that goes on; 0: none does, and Start() comes. Returns why it
  // cannot, a clause, and has changed nothing then; empty: it did.
  virtual std::string Recall(std::string_view memory, std::uint32_t members) = 0;

  // Goes on under a plan that a former coordinator made, with what was recalled; where nothing was
  // it learns anew. encodings: that the group knows, beside that of the plan.
  virtual void Resume(const Plan& in_force, const KnownEncodings& encodings) = 0;

  // Folds one worker's report in.
  virtual void Observe(const Report& report) = 0;

  // Proposes a plan to follow `in_force`, or leaves it. The caller asks when a whole round,
  // reported by all members, ran under `in_force`, so that no proposal is made on top of a
  // travelling one. seconds_left: of training as foreseen, what is not worth trying any more goes
  // by; nothing: that is not known.
  virtual std::optional<Revision> Decide(const Plan& in_force,
                                         std::optional<double> seconds_left) = 0;

  // What Revert would do. decision: of this job, of an axis that another value was decided for.
  virtual Undoing Undo(const Plan& in_force, const Decision& decision) const = 0;

  // The axis stays as it is from now on, as one of PlannerOptions::frozen.
  virtual void Freeze(Axis axis) = 0;

  // Takes a decision back for a user: a plan to follow `in_force` in which the axis has the value
  // that it had before, where the others can follow. The axis is frozen from now on. Asked in the
  // place of Decide.
  virtual std::optional<Revision> Revert(const Plan& in_force, const Decision& decision) = 0;

  // The group under `in_force` as it was measured; nothing while speeds or transfer are not known.
  virtual std::optional<MeasuredGroup> Measured(const Plan& in_force) const = 0;

  // What the next job of this kind should begin with (StartingGroup::prior); nothing where nothing
  // was judged.
  virtual std::optional<Prior> Learned() const = 0;

  // Decisions whose measured gain became known since the last call, complete.
  virtual std::vector<Decision> TakeMeasured() = 0;
};

// The planner that ships with Tactus.
class Planner final : public PlanPolicy {
 public:
  // Requires: UnknownPolicies(options) is empty.
  explicit Planner(const PlannerOptions& options);

  Revision Start(const StartingGroup& starting) override;
  std::string Memory() const override;
  std::string Recall(std::string_view memory, std::uint32_t members) override;
  void Resume(const Plan& in_force, const KnownEncodings& encodings) override;
  void Observe(const Report& report) override;
  std::optional<Revision> Decide(const Plan& in_force, std::optional<double> seconds_left) override;
  Undoing Undo(const Plan& in_force, const Decision& decision) const override;
  void Freeze(Axis axis) override { frozen_[axis] = true; }
  std::optional<Revision> Revert(const Plan& in_force, const Decision& decision) override;
  std::optional<MeasuredGroup> Measured(const Plan& in_force) const override;
  std::optional<Prior> Learned() const override;
  std::vector<Decision> TakeMeasured() override { return gains_.Take(); }

 private:
  // What the memory holds, behind whose it is.
  friend void Fields(auto& archive, Of<Planner> auto& planner) {
    archive("seen", planner.seen_);
    archive("gains", planner.gains_);
    for (const Axis axis : kAxes) archive(FieldOf(axis).data(), *planner.policies_[axis]);
  }
  // Returns as Recall(); what a failure leaves behind is good for nothing.
  std::string Read(std::string_view memory);

  // Goes on under the plan with nothing recalled.
  void LearnAnew(const Plan& in_force);
  // The group's first plan and why each axis is as it is; of frozen ones, as before, if `keep`.
  Plan FirstPlan(const StartingGroup& group, bool keep, PerAxis<std::string>* reasons);
  // The first plan becomes the one that the members had before, where they can run it.
  // `unjudged`: the encoding of before was on trial by the loss, and goes back.
  void GoOn(const Plan& before, bool unjudged, Plan& plan, PerAxis<std::string>& reasons);
  bool Frozen(Axis axis) const { return frozen_[axis]; }
  // What the planner knows of a decision on an axis; why is the policy's to say.
  Decision Draft(Axis axis, const Plan& from, const Plan& to) const;
  // Makes the axes other than `changed` follow, but for those that are frozen. Returns why each
  // did, empty where it did not.
  PerAxis<std::string> Follow(Plan& plan, Axis changed) const;
  // The plan with the other axes made to follow, if such a plan may be run.
  std::optional<Plan> Complete(const Plan& plan, Axis changed) const;
  // The proposal as a whole plan with its decisions; nothing if it may not be run.
  std::optional<Revision> Revise(const Plan& in_force, Axis axis, Proposal proposal) const;
  // What the axis's policy proposes.
  std::optional<Proposal> Ask(Axis axis, const Plan& in_force, const Observations& seen);
  // Where transfers become others by the axis that changed, the period for them is chosen in the
  // same plan.
  void Join(const Plan& in_force, Axis changed, double transfer_seconds, Revision& revision);
  bool OnTrial(Axis axis) const;
  bool OtherOnTrial(Axis axis) const;
  Trial GoesOn(const Plan& in_force) const;
  BatchWorth Worth(const Plan& plan) const;
  // Gives the decision what a forecast promises of its metric; no metric while that is unknown.
  void Promise(const Plan& in_force, const Plan& to, Decision& decision) const;
  // Why the plan cannot be run, a clause; empty: it can.
  std::string Obstacle(const Plan& plan) const;

  const PlannerOptions options_;
  PerAxis<bool> frozen_;
  PerAxis<std::unique_ptr<AxisPolicy>> policies_;
  ReplicaReports replicas_;  // what is held of a round is not remembered: it is one round of many
  Observations seen_;
  GainMeter gains_;
};

}  // namespace tactus::policies
