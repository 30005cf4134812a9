#include "policies/planner.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/check.h"
#include "policies/catalogue.h"
#include "policies/compatibility.h"
#include "policies/planner_fields.h"

namespace tactus::policies {
namespace {

// In the order in which they are asked. What changes a round most comes first, so the batch sizes,
// with which a first plan begins, come last.
constexpr auto kAxesAsked = [] {
  auto axes = kAxes;
  std::rotate(axes.begin(), axes.begin() + 1, axes.end());
  return axes;
}();

// Grows when a field of a memory changes its meaning and keeps its name.
constexpr std::uint32_t kMemoryVersion = 1;

// Whose memory it is.
struct MemoryOwner {
  std::uint32_t version = kMemoryVersion;
  PlannerOptions options{};

  friend bool operator==(const MemoryOwner&, const MemoryOwner&) = default;
};
void Fields(auto& archive, Of<MemoryOwner> auto& owner) {
  archive("version", owner.version);
  archive("options", owner.options);
}

// What is frozen is not decided, but learned of as ever.
MemoryOwner OwnerOf(PlannerOptions options) {
  options.frozen.clear();
  return {.options = std::move(options)};
}

}  // namespace

Planner::Planner(const PlannerOptions& options)
    : options_(options), seen_(options.synchronization.loss_floor), gains_(options.base_batch) {
  for (const Axis axis : kAxes) {
    const Policy* const policy = FindPolicy(axis, PolicyOf(options_, axis));
    TACTUS_CHECK(policy != nullptr);
    policies_[axis] = policy->make(options_);
  }
}

bool Planner::Frozen(Axis axis) const {
  return std::ranges::find(options_.frozen, axis) != options_.frozen.end();
}

Decision Planner::Draft(Axis axis, const Plan& from, const Plan& to) const {
  return {.plan_version = to.version,
          .axis = axis,
          .round = seen_.last_round(),
          .seconds = seen_.seconds(),
          .from = from.batch_sizes.empty() ? "" : ValueOf(from, axis),
          .to = ValueOf(to, axis)};
}

PerAxis<std::string> Planner::Follow(Plan& plan, Axis changed) {
  PerAxis<std::string> reasons;
  // In this order: the learning rate comes last, and sees what the others have become.
  for (const Axis axis : kAxes) {
    if (axis != changed) reasons[axis] = policies_[axis]->Follow(plan, seen_);
  }
  return reasons;
}

std::optional<Plan> Planner::Complete(const Plan& plan, Axis changed) {
  Plan whole = plan;
  Follow(whole, changed);
  if (!Fits(whole, seen_.members()) || !Allowed(whole, options_.optimizer)) return std::nullopt;
  return whole;
}

std::optional<Revision> Planner::Revise(const Plan& in_force, Axis axis, Proposal proposal) {
  Revision revision{.plan = std::move(proposal.plan)};
  Plan& plan = revision.plan;
  plan.version = in_force.version + 1;
  const PerAxis<std::string> reasons = Follow(plan, axis);
  if (!Fits(plan, seen_.members()) || !Allowed(plan, options_.optimizer)) return std::nullopt;
  plan.reason = proposal.decision.reason;
  for (const Axis each : kAxesAsked) {
    Decision decision = Draft(each, in_force, plan);
    if (decision.from == decision.to) continue;
    // Also where the axis would only follow: frozen is frozen.
    if (Frozen(each)) return std::nullopt;
    if (each == axis) {
      decision.inputs = std::move(proposal.decision.inputs);
      decision.metric = std::move(proposal.decision.metric);
      decision.predicted_gain = proposal.decision.predicted_gain;
      decision.alternatives = std::move(proposal.decision.alternatives);
      decision.reason = std::move(proposal.decision.reason);
    } else {
      decision.reason = reasons[each];
      // An axis that moved without being the one proposed did so in Follow(), which says why.
      TACTUS_CHECK(!decision.reason.empty());
      plan.reason += "; " + decision.reason;
    }
    revision.decisions.push_back(std::move(decision));
  }
  if (revision.decisions.empty()) return std::nullopt;
  return revision;
}

Revision Planner::Start(const StartingGroup& group) {
  gains_.Forget();
  seen_.Start(group);
  Revision revision;
  PerAxis<std::string> reasons;
  for (const Axis axis : kAxes) reasons[axis] = policies_[axis]->Start(revision.plan, seen_);
  TACTUS_CHECK(Fits(revision.plan, group.members));
  TACTUS_CHECK(Allowed(revision.plan, options_.optimizer));
  revision.plan.reason = reasons[Axis::kBatch];
  for (const Axis axis : kAxes) {
    Decision decision = Draft(axis, {}, revision.plan);
    decision.reason = std::move(reasons[axis]);
    revision.decisions.push_back(std::move(decision));
  }
  seen_.Expect(revision.plan);
  return revision;
}

std::string Planner::Memory() const {
  MemoryWriter memory;
  memory.Write(OwnerOf(options_));
  memory.Seal();
  memory.Write(*this);
  return memory.Finish();
}

std::string Planner::Read(std::string_view memory) {
  MemoryReader reader(memory);
  if (!reader.ok()) return "it is damaged";
  MemoryOwner owner;
  reader.Read(owner);
  reader.CheckSeal();
  if (!reader.ok() || owner.version != kMemoryVersion) return "it is of another version";
  if (owner != OwnerOf(options_)) return "it was learned under other options";
  reader.Read(*this);
  return reader.Finish() ? "" : "it is of another version, or its numbers contradict each other";
}

// Into a fresh one first: what cannot be read whole is not to be read at all.
std::string Planner::Recall(std::string_view memory, std::uint32_t members) {
  Planner fresh(options_);
  if (std::string why = fresh.Read(memory); !why.empty()) return why;
  const std::uint32_t learned = fresh.seen_.members();
  if (members != 0 && learned != members) {
    return "it is of a group of " + std::to_string(learned) + ", and one of " +
           std::to_string(members) + " goes on";
  }
  return Read(memory);
}

void Planner::Resume(const Plan& in_force) {
  if (seen_.members() != 0) return;
  Start({.members = static_cast<std::uint32_t>(in_force.batch_sizes.size())});
  // In the place of the plan that Start() drafted, which nobody runs.
  seen_.Expect(in_force);
  for (const Axis axis : kAxes) policies_[axis]->Resume(in_force);
}

void Planner::Observe(const Report& report) {
  for (const Axis axis : kAxes) policies_[axis]->Observe(report);
  seen_.Observe(report);
}

std::optional<Revision> Planner::Decide(const Plan& in_force) {
  if (!Fits(in_force, seen_.members())) return std::nullopt;
  seen_.Expect(in_force);
  gains_.Step(seen_);
  for (const Axis axis : kAxesAsked) {
    if (Frozen(axis)) continue;
    const std::function<std::optional<Plan>(const Plan&)> complete =
        [this, axis](const Plan& plan) { return Complete(plan, axis); };
    std::optional<Proposal> proposal =
        policies_[axis]->Decide({.in_force = in_force, .seen = seen_, .complete = complete});
    if (!proposal) continue;
    std::optional<Revision> revision = Revise(in_force, axis, *std::move(proposal));
    if (!revision) continue;
    gains_.Follow(revision->decisions, seen_);
    seen_.Expect(revision->plan);
    return revision;
  }
  return std::nullopt;
}

}  // namespace tactus::policies
