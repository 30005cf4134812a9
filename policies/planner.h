// The joint planner of one job: from what the workers saw to the next plan, with its reasons.
//
// One policy for each axis proposes, the compatibility rules are kept between them, and what was
// promised is measured afterwards.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/batch_policy.h"
#include "policies/decision.h"
#include "policies/plan.h"

namespace tactus::policies {

// How the synchronization is chosen; fields that a policy does not have are left alone.
struct SynchronizationOptions {
  std::string policy = "every_step";  // every_step, periodic, adacomm, delayed, auto
  // periodic: tau, >= 1. adacomm: tau_0; 0: found by a short search at the start.
  std::uint32_t period = 0;
  std::uint32_t period_max = 128;  // adacomm and auto, >= 1
  double interval_seconds = 60;    // adacomm: T_0, > 0
  double loss_floor = 0;           // adacomm: F_inf
  std::uint32_t steps_max = 1024;  // delayed: steps of a round at most, >= 1

  friend bool operator==(const SynchronizationOptions&, const SynchronizationOptions&) = default;
};

// What a job's file says about adapting, and what of its optimizer the policies must know.
struct PlannerOptions {
  std::string batch_policy = "proportional";  // fixed, proportional, abs, auto
  BatchOptions batch{};
  SynchronizationOptions synchronization{};
  std::string aggregation_policy = "average";     // average, adasum, auto
  std::string learning_rate_policy = "constant";  // constant, linear, sqrt, adascale, auto
  std::uint32_t base_batch = 32;  // samples of a step that the learning rate was chosen for, >= 1
  std::string optimizer = "sgd";  // of policies/optimizers.h
  double momentum = 0;            // of sgd
  // Axes that Decide leaves as they are, and changes of others that would change them with them.
  std::vector<Axis> frozen{};

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

// A plan and why it differs from the one before.
struct Revision {
  Plan plan{};  // version: of the plan in force + 1; left to the caller, 0, of a
                // group's first plan
  std::vector<Decision> decisions{};  // at least one, of different axes
};

// What decides the plans of a job: the contract of whoever may do so. Pure and total; not
// thread-safe.
class PlanPolicy {
 public:
  virtual ~PlanPolicy() = default;

  // A (new) group starts; what was learned of former ranks is forgotten, what was learned of the
  // loss is kept.
  virtual Revision Start(const StartingGroup& group) = 0;

  // Goes on under a plan that a former coordinator made.
  virtual void Resume(const Plan& in_force) = 0;

  // Folds one worker's report in.
  virtual void Observe(const Report& report) = 0;

  // Proposes a plan to follow `in_force`, or leaves it. The caller asks when a whole round,
  // reported by all members, ran under `in_force`, so that no proposal is made on top of a
  // travelling one.
  virtual std::optional<Revision> Decide(const Plan& in_force) = 0;

  // Decisions whose measured gain became known since the last call, complete.
  virtual std::vector<Decision> TakeMeasured() = 0;
};

// The planner that ships with Tactus.
class Planner final : public PlanPolicy {
 public:
  // Requires: UnknownPolicies(options) is empty.
  explicit Planner(const PlannerOptions& options);
  ~Planner() override;

  Revision Start(const StartingGroup& group) override;
  void Resume(const Plan& in_force) override;
  void Observe(const Report& report) override;
  std::optional<Revision> Decide(const Plan& in_force) override;
  std::vector<Decision> TakeMeasured() override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A policy's name that this version does not have.
struct UnknownPolicy {
  Axis axis = Axis::kBatch;
  std::string name{};
};

std::vector<UnknownPolicy> UnknownPolicies(const PlannerOptions& options);

}  // namespace tactus::policies
