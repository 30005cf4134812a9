#include "policies/planner.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/check.h"
#include "policies/axis_registry.h"
#include "policies/compatibility.h"
#include "policies/gain_meter.h"
#include "policies/observations.h"

namespace tactus::policies {
namespace {

// In the order in which they are asked: what changes a round most comes first.
constexpr std::array<Axis, 4> kAxes = {Axis::kSynchronization, Axis::kAggregation,
                                       Axis::kLearningRate, Axis::kBatch};
// In the order in which a first plan is made, and in which the rest follows a change.
constexpr std::array<Axis, 4> kAxesOfStart = {Axis::kBatch, Axis::kSynchronization,
                                              Axis::kAggregation, Axis::kLearningRate};

std::size_t IndexOf(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

struct Planner::Parts {
  explicit Parts(const PlannerOptions& planner_options)
      : options(planner_options),
        seen(planner_options.synchronization.loss_floor),
        gains(planner_options.base_batch) {
    for (const Axis axis : kAxes) {
      axes[IndexOf(axis)] = MakeAxisPolicy(axis, options);
      TACTUS_CHECK(axes[IndexOf(axis)] != nullptr);
    }
  }

  bool Frozen(Axis axis) const {
    return std::ranges::find(options.frozen, axis) != options.frozen.end();
  }
  AxisPolicy& PolicyOf(Axis axis) { return *axes[IndexOf(axis)]; }
  Decision Draft(Axis axis, const Plan& from, const Plan& to) const;
  // The plan with the axes other than `changed` made to follow; why each did, by axis.
  std::array<std::string, 4> Follow(Plan& plan, Axis changed);
  std::optional<Plan> Complete(const Plan& plan, Axis changed);
  std::optional<Revision> Revise(const Plan& in_force, Axis axis, Proposal proposal);

  const PlannerOptions options;
  std::array<std::unique_ptr<AxisPolicy>, 4> axes;  // by Axis
  Observations seen;
  GainMeter gains;
};

Decision Planner::Parts::Draft(Axis axis, const Plan& from, const Plan& to) const {
  return {.plan_version = to.version,
          .axis = axis,
          .round = seen.last_round(),
          .seconds = seen.seconds(),
          .from = from.batch_sizes.empty() ? "" : ValueOf(from, axis),
          .to = ValueOf(to, axis)};
}

std::array<std::string, 4> Planner::Parts::Follow(Plan& plan, Axis changed) {
  std::array<std::string, 4> reasons;
  for (const Axis axis : kAxesOfStart) {
    if (axis != changed) reasons[IndexOf(axis)] = PolicyOf(axis).Follow(plan, seen);
  }
  return reasons;
}

std::optional<Plan> Planner::Parts::Complete(const Plan& plan, Axis changed) {
  Plan whole = plan;
  Follow(whole, changed);
  if (!Fits(whole, seen.members()) || !Allowed(whole, options.optimizer)) return std::nullopt;
  return whole;
}

std::optional<Revision> Planner::Parts::Revise(const Plan& in_force, Axis axis, Proposal proposal) {
  Revision revision{.plan = std::move(proposal.plan)};
  Plan& plan = revision.plan;
  plan.version = in_force.version + 1;
  const std::array<std::string, 4> reasons = Follow(plan, axis);
  if (!Fits(plan, seen.members()) || !Allowed(plan, options.optimizer)) return std::nullopt;
  plan.reason = proposal.decision.reason;
  for (const Axis each : kAxes) {
    Decision decision = Draft(each, in_force, plan);
    if (decision.from == decision.to) continue;
    if (Frozen(each)) return std::nullopt;
    if (each == axis) {
      decision.inputs = std::move(proposal.decision.inputs);
      decision.metric = std::move(proposal.decision.metric);
      decision.predicted_gain = proposal.decision.predicted_gain;
      decision.alternatives = std::move(proposal.decision.alternatives);
      decision.reason = std::move(proposal.decision.reason);
    } else {
      decision.reason = reasons[IndexOf(each)];
      TACTUS_CHECK(!decision.reason.empty());
      plan.reason += "; " + decision.reason;
    }
    revision.decisions.push_back(std::move(decision));
  }
  if (revision.decisions.empty()) return std::nullopt;
  return revision;
}

std::vector<UnknownPolicy> UnknownPolicies(const PlannerOptions& options) {
  const std::array<std::pair<Axis, const std::string*>, 4> names = {
      {{Axis::kBatch, &options.batch_policy},
       {Axis::kSynchronization, &options.synchronization.policy},
       {Axis::kAggregation, &options.aggregation_policy},
       {Axis::kLearningRate, &options.learning_rate_policy}}};
  std::vector<UnknownPolicy> unknown;
  for (const auto& [axis, name] : names) {
    if (MakeAxisPolicy(axis, options) == nullptr) unknown.push_back({.axis = axis, .name = *name});
  }
  return unknown;
}

Planner::Planner(const PlannerOptions& options) : parts_(std::make_unique<Parts>(options)) {}

Planner::~Planner() = default;

Revision Planner::Start(const StartingGroup& group) {
  Parts& parts = *parts_;
  parts.gains.Forget();
  parts.seen.Start(group);
  Revision revision;
  std::array<std::string, 4> reasons;
  for (const Axis axis : kAxesOfStart) {
    reasons[IndexOf(axis)] = parts.PolicyOf(axis).Start(revision.plan, parts.seen);
  }
  TACTUS_CHECK(Fits(revision.plan, group.members));
  TACTUS_CHECK(Allowed(revision.plan, parts.options.optimizer));
  revision.plan.reason = reasons[IndexOf(Axis::kBatch)];
  for (const Axis axis : kAxesOfStart) {
    Decision decision = parts.Draft(axis, {}, revision.plan);
    decision.reason = std::move(reasons[IndexOf(axis)]);
    revision.decisions.push_back(std::move(decision));
  }
  parts.seen.Expect(revision.plan);
  return revision;
}

void Planner::Resume(const Plan& in_force) {
  Parts& parts = *parts_;
  Start({.members = static_cast<std::uint32_t>(in_force.batch_sizes.size())});
  parts.seen.Expect(in_force);
  for (const Axis axis : kAxesOfStart) parts.PolicyOf(axis).Resume(in_force);
}

void Planner::Observe(const Report& report) {
  for (const Axis axis : kAxes) parts_->PolicyOf(axis).Observe(report);
  parts_->seen.Observe(report);
}

std::optional<Revision> Planner::Decide(const Plan& in_force) {
  Parts& parts = *parts_;
  if (!Fits(in_force, parts.seen.members())) return std::nullopt;
  parts.seen.Expect(in_force);
  parts.gains.Step(parts.seen);
  for (const Axis axis : kAxes) {
    if (parts.Frozen(axis)) continue;
    const std::function<std::optional<Plan>(const Plan&)> complete =
        [&parts, axis](const Plan& plan) { return parts.Complete(plan, axis); };
    std::optional<Proposal> proposal = parts.PolicyOf(axis).Decide(
        {.in_force = in_force, .seen = parts.seen, .complete = complete});
    if (!proposal) continue;
    std::optional<Revision> revision = parts.Revise(in_force, axis, *std::move(proposal));
    if (!revision) continue;
    parts.gains.Follow(revision->decisions, parts.seen);
    parts.seen.Expect(revision->plan);
    return revision;
  }
  return std::nullopt;
}

std::vector<Decision> Planner::TakeMeasured() { return parts_->gains.Take(); }

}  // namespace tactus::policies
