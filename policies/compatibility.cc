#include "policies/compatibility.h"

#include <algorithm>
#include <span>

#include "policies/catalogue.h"
#include "policies/figures.h"
#include "policies/optimizers.h"
#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

// A choice as a job file has it.
struct Choice {
  std::string field{};
  std::string value{};
  std::vector<Trait> traits{};
  std::span<const Exclusion> excludes{};
};

std::vector<Trait> TraitsOfOptimizer(std::string_view name) {
  std::vector<Trait> traits;
  if (IsPreconditioned(name)) traits.push_back(Trait::kPreconditioned);
  if (!HasSecondMoment(name)) traits.push_back(Trait::kFirstMoments);
  return traits;
}

// Backwards, so that what is to be changed first follows from the rest; then what is no axis.
std::vector<Choice> ChoicesOf(const PlannerOptions& options) {
  std::vector<Choice> choices;
  for (auto at = kAxes.rbegin(); at != kAxes.rend(); ++at) {
    const Axis axis = *at;
    const Policy* const policy = FindPolicy(axis, PolicyOf(options, axis));
    if (policy == nullptr) continue;
    choices.push_back({.field = "adapt." + std::string(FieldOf(axis)) + ".policy",
                       .value = std::string(policy->name),
                       .traits = policy->traits,
                       .excludes = policy->excludes});
  }
  choices.push_back({.field = "optimizer",
                     .value = options.optimizer,
                     .traits = TraitsOfOptimizer(options.optimizer)});
  if (options.clip_norm) {
    choices.push_back({.field = "optimizer.clip_norm",
                       .value = Figure(*options.clip_norm),
                       .traits = {Trait::kClipped}});
  }
  if (options.shard != "none") {
    choices.push_back(
        {.field = "optimizer.shard", .value = options.shard, .traits = {Trait::kSharded}});
  }
  if (options.mesh != "none") {
    choices.push_back(
        {.field = "model.options.mesh", .value = options.mesh, .traits = {Trait::kInParts}});
  }
  return choices;
}

// Whether a step goes by former gradients, too.
bool HasMemory(const PlannerOptions& options) {
  return IsPreconditioned(options.optimizer) || options.momentum > 0;
}

Conflict Between(const Choice& choice, const Choice& other, std::string_view reason) {
  return {.field = choice.field,
          .other = other.field,
          .reason = "found " + choice.value + ", which does not go with " + other.field + " " +
                    other.value + ": " + std::string(reason)};
}

}  // namespace

std::vector<Conflict> ConflictsOf(const PlannerOptions& options) {
  const std::vector<Choice> choices = ChoicesOf(options);
  std::vector<Conflict> conflicts;
  for (const Choice& choice : choices) {
    for (const Exclusion& exclusion : choice.excludes) {
      if (exclusion.of_memory && !HasMemory(options)) continue;
      if (exclusion.of_parts && options.mesh == "none") continue;
      for (const Choice& other : choices) {
        if (std::ranges::find(other.traits, exclusion.trait) == other.traits.end()) continue;
        conflicts.push_back(Between(choice, other, exclusion.reason));
      }
    }
  }
  // Those of the axes among themselves are told first.
  std::stable_partition(conflicts.begin(), conflicts.end(), [](const Conflict& conflict) {
    return !conflict.other.starts_with("optimizer");
  });
  return conflicts;
}

OptimizerFacts FactsOf(const PlannerOptions& options) {
  return {.name = options.optimizer,
          .momentum = options.momentum,
          .clip_norm = options.clip_norm,
          .shard = options.shard,
          .mesh = options.mesh};
}

std::vector<Conflict> ConflictsOf(const Plan& plan, const OptimizerFacts& optimizer) {
  // A plan is what a job of fixed choices would run.
  PlannerOptions same{.batch_policy = "fixed",
                      .optimizer = optimizer.name,
                      .momentum = optimizer.momentum,
                      .clip_norm = optimizer.clip_norm,
                      .shard = optimizer.shard,
                      .mesh = optimizer.mesh};
  same.synchronization.policy = NameOf(plan.synchronization);
  same.aggregation_policy = NameOf(plan.aggregation);
  same.learning_rate_policy = NameOf(plan.learning_rate_rule);
  same.encoding_policy = NameOf(plan.encoding);
  return ConflictsOf(same);
}

bool Allowed(const Plan& plan, const OptimizerFacts& optimizer) {
  return ConflictsOf(plan, optimizer).empty();
}

}  // namespace tactus::policies
