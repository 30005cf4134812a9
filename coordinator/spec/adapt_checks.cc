#include "coordinator/spec/adapt_checks.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "coordinator/spec/engine_options.h"
#include "policies/compatibility.h"
#include "policies/plan.h"

namespace tactus::spec {
namespace {

using Synchronization = v1::SynchronizationPolicy;

constexpr Synchronization kPeriodic = v1::SYNCHRONIZATION_POLICY_PERIODIC;
constexpr Synchronization kAdacomm = v1::SYNCHRONIZATION_POLICY_ADACOMM;
constexpr Synchronization kDelayed = v1::SYNCHRONIZATION_POLICY_DELAYED;
constexpr Synchronization kAuto = v1::SYNCHRONIZATION_POLICY_AUTO;

constexpr std::uint64_t kBatchMax = 1u << 20;
constexpr int kBoundariesMax = 64;

// "ABS" of "BATCH_POLICY_ABS" in lower case; 0 and what is unknown are the default.
std::string PolicyName(const google::protobuf::EnumDescriptor& type, int value,
                       const std::string& otherwise) {
  const auto* found = value == 0 ? nullptr : type.FindValueByNumber(value);
  if (found == nullptr) return otherwise;
  const std::size_t prefix = type.value(0)->name().size() - std::string("UNSPECIFIED").size();
  std::string name = found->name().substr(prefix);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

// All names of a policy, for a message.
std::vector<std::string> PolicyNames(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    names.push_back(PolicyName(type, type.value(i)->number(), ""));
  }
  return names;
}

bool CheckPolicy(const std::string& field, const google::protobuf::EnumDescriptor& type, int value,
                 FieldChecks& checks) {
  const bool known = type.FindValueByNumber(value) != nullptr;
  checks.Known(field, known, value, PolicyNames(type));
  return known;
}

void CheckBatch(const v1::BatchAxis& batch, FieldChecks& checks) {
  const std::string field = "adapt.batch.";
  const Bounds bounds = {1, kBatchMax};
  bool right =
      !batch.has_per_worker() || checks.Whole(field + "per_worker", batch.per_worker(), bounds);
  right = (!batch.has_min() || checks.Whole(field + "min", batch.min(), bounds)) && right;
  right = (!batch.has_max() || checks.Whole(field + "max", batch.max(), bounds)) && right;
  if (batch.has_micro_batch()) checks.Whole(field + "micro_batch", batch.micro_batch(), bounds);
  if (!right) return;
  const std::uint64_t min = batch.has_min() ? batch.min() : 1;
  const std::uint64_t max = batch.has_max() ? batch.max() : kBatchMax;
  const std::uint64_t per_worker = batch.has_per_worker() ? batch.per_worker() : 32;
  if (max < min) {
    checks.Add(field + "max", "found " + std::to_string(max) + ", allowed is adapt.batch.min, " +
                                  std::to_string(min) + ", or more");
  } else {
    checks.Whole(field + "per_worker", per_worker, {min, max});
  }
}

// ---- synchronization

// A field that is given belongs to the axis' policy.
class Owned {
 public:
  Owned(const v1::SynchronizationAxis& axis, FieldChecks& checks) : axis_(axis), checks_(checks) {}

  // Whether the field is to be checked further.
  bool By(const std::string& name, bool given, std::initializer_list<Synchronization> policies) {
    if (!given) return false;
    if (std::ranges::find(policies, axis_.policy()) != policies.end()) return true;
    std::vector<std::string> owners;
    for (const Synchronization policy : policies) owners.push_back(Name(policy));
    checks_.Add(
        "adapt.synchronization." + name,
        "does not apply to policy " + Name(axis_.policy()) + "; it is for " + Enumerate(owners));
    return false;
  }

  static std::string Name(Synchronization policy) {
    return PolicyName(*v1::SynchronizationPolicy_descriptor(), policy, "every_step");
  }

 private:
  const v1::SynchronizationAxis& axis_;
  FieldChecks& checks_;
};

void CheckPeriods(const v1::SynchronizationAxis& axis, FieldChecks& checks) {
  const std::string field = "adapt.synchronization.";
  const Bounds bounds = {1, policies::kPeriodMax};
  Owned owned(axis, checks);
  if (axis.policy() == kPeriodic && !axis.has_period()) {
    checks.Missing(field + "period",
                   "policy periodic needs the local steps of a round, 1 to 65536");
  } else if (owned.By("period", axis.has_period(), {kPeriodic})) {
    checks.Whole(field + "period", axis.period(), bounds);
  }
  std::uint64_t longest = policies::SynchronizationOptions{}.period_max;
  if (owned.By("period_max", axis.has_period_max(), {kAdacomm, kAuto})) {
    if (checks.Whole(field + "period_max", axis.period_max(), bounds)) longest = axis.period_max();
  }
  if (owned.By("initial_period", axis.has_initial_period(), {kAdacomm})) {
    checks.Whole(field + "initial_period", axis.initial_period(), {1, longest});
  }
  if (owned.By("steps_max", axis.has_steps_max(), {kDelayed, kAuto})) {
    checks.Whole(field + "steps_max", axis.steps_max(), bounds);
  }
}

void CheckSynchronization(const v1::SynchronizationAxis& axis, FieldChecks& checks) {
  const std::string field = "adapt.synchronization.";
  if (!CheckPolicy(field + "policy", *v1::SynchronizationPolicy_descriptor(), axis.policy(),
                   checks)) {
    return;
  }
  CheckPeriods(axis, checks);
  Owned owned(axis, checks);
  if (owned.By("interval", axis.has_interval(), {kAdacomm, kAuto})) {
    checks.Time(field + "interval", axis.interval());
  }
  if (owned.By("loss_floor", axis.has_loss_floor(), {kAdacomm, kAuto})) {
    checks.Real(field + "loss_floor", axis.loss_floor(), kFinite);
  }
  if (owned.By("block_momentum", axis.has_block_momentum(), {kPeriodic, kAdacomm, kAuto})) {
    checks.Real(field + "block_momentum", axis.block_momentum(), kBelowOne);
  }
  const bool momentum = axis.local_momentum() != v1::LOCAL_MOMENTUM_UNSPECIFIED;
  if (owned.By("local_momentum", momentum, {kPeriodic, kAdacomm, kAuto})) {
    CheckPolicy(field + "local_momentum", *v1::LocalMomentum_descriptor(), axis.local_momentum(),
                checks);
  }
}

// ---- learning rate

void CheckStep(const v1::StepSchedule& step, FieldChecks& checks) {
  const std::string field = "adapt.learning_rate.schedule.step.";
  if (step.boundaries().empty()) {
    checks.Missing(field + "boundaries", "give 1 to 64 base steps, rising, such as [3000, 6000]");
  } else if (step.boundaries_size() > kBoundariesMax) {
    checks.Add(field + "boundaries",
               "found " + std::to_string(step.boundaries_size()) + " of them, allowed are 1 to 64");
  } else if (step.boundaries(0) < 1 ||
             std::ranges::adjacent_find(step.boundaries(), std::greater_equal<>()) !=
                 step.boundaries().end()) {
    checks.Add(field + "boundaries", "are not rising base steps of 1 or more");
  }
  if (!step.has_factor()) return;
  checks.Real(field + "factor", step.factor(),
              {.low = 0, .low_included = false, .high = 1, .text = "above 0 to 1"});
}

void CheckCosine(const v1::JobSpec& spec, FieldChecks& checks) {
  const std::string field = "adapt.learning_rate.schedule.cosine.";
  const v1::Schedule& schedule = spec.adapt().learning_rate().schedule();
  const v1::CosineSchedule& cosine = schedule.cosine();
  if (!cosine.has_steps()) {
    checks.Missing(field + "steps", "give the base step at which the rate has come down");
  } else if (cosine.steps() <= schedule.warmup_steps()) {
    checks.Add(field + "steps", "found " + std::to_string(cosine.steps()) +
                                    ", allowed is more than schedule.warmup_steps, " +
                                    std::to_string(schedule.warmup_steps()));
  }
  if (!cosine.has_final_rate()) return;
  checks.Real(field + "final_rate", cosine.final_rate(),
              {.low = 0,
               .high = LearningRateOf(spec.optimizer()),
               .text = "0 to the optimizer's learning_rate"});
}

void CheckLearningRate(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::LearningRateAxis& axis = spec.adapt().learning_rate();
  CheckPolicy("adapt.learning_rate.policy", *v1::LearningRatePolicy_descriptor(), axis.policy(),
              checks);
  if (axis.has_base_batch()) {
    checks.Whole("adapt.learning_rate.base_batch", axis.base_batch(),
                 {1, policies::kRoundSamplesMax});
  }
  if (axis.schedule().has_step()) CheckStep(axis.schedule().step(), checks);
  if (axis.schedule().has_cosine()) CheckCosine(spec, checks);
}

// ---- what is not adapted

struct AxisName {
  const char* name;
  policies::Axis axis;
};
constexpr AxisName kAxes[] = {{"batch", policies::Axis::kBatch},
                              {"synchronization", policies::Axis::kSynchronization},
                              {"aggregation", policies::Axis::kAggregation},
                              {"learning_rate", policies::Axis::kLearningRate}};

void CheckFrozen(const v1::Adapt& adapt, FieldChecks& checks) {
  std::vector<std::string> names;
  for (const AxisName& axis : kAxes) names.emplace_back(axis.name);
  for (int i = 0; i < adapt.frozen_size(); ++i) {
    const std::string field = "adapt.frozen[" + std::to_string(i) + "]";
    const auto before = adapt.frozen().begin() + i;
    if (std::find(adapt.frozen().begin(), before, adapt.frozen(i)) != before) {
      checks.Add(field, "found " + Shown(adapt.frozen(i)) + " again, allowed is each axis once");
      return;
    }
    const std::size_t wrong = checks.violations().size();
    checks.OneOf(field, adapt.frozen(i), names);
    if (checks.violations().size() > wrong) return;
  }
}

// ---- all together

std::string OptimizerName(const v1::Optimizer& optimizer) {
  if (optimizer.has_adam()) return "adam";
  if (optimizer.has_adamw()) return "adamw";
  return optimizer.has_lamb() ? "lamb" : "sgd";
}

void CheckChoices(const v1::JobSpec& spec, FieldChecks& checks) {
  const policies::PlannerOptions adapt = PlannerOptionsOf(spec);
  const policies::Choices choices = {
      .batch = adapt.batch_policy,
      .synchronization = adapt.synchronization.policy,
      .aggregation = adapt.aggregation_policy,
      .learning_rate = adapt.learning_rate_policy,
      .optimizer = adapt.optimizer,
      .block_momentum = spec.adapt().synchronization().block_momentum() > 0};
  for (const policies::Conflict& conflict : policies::ConflictsOf(choices)) {
    checks.Add(conflict.field, conflict.reason);
  }
}

// Steps of the shortest round that the job's plans can have.
std::uint64_t StepsOfARound(const policies::PlannerOptions& adapt) {
  return adapt.synchronization.policy == "delayed" ? 1 : std::max(1u, adapt.synchronization.period);
}

void CheckRound(const v1::JobSpec& spec, FieldChecks& checks) {
  const policies::PlannerOptions adapt = PlannerOptionsOf(spec);
  const std::uint64_t steps = StepsOfARound(adapt);
  if (adapt.batch.per_worker > kBatchMax || steps > policies::kPeriodMax) return;
  const std::uint32_t most = WorkersOfARound(adapt);
  if (std::max(1u, spec.workers().min()) <= most) return;
  const std::string limit = ": a round has at most 16777216 samples";
  if (most == 0) {
    const bool periodic = spec.adapt().synchronization().policy() == kPeriodic;
    checks.Add(periodic ? "adapt.synchronization.period" : "adapt.synchronization.initial_period",
               "found " + std::to_string(steps) +
                   ", which is too much with this adapt.batch.per_worker" + limit);
    return;
  }
  const std::string period = steps > 1 ? " and this period" : "";
  checks.Add("workers.min", "found " + std::to_string(spec.workers().min()) +
                                ", allowed with this adapt.batch.per_worker" + period +
                                " is at most " + std::to_string(most) + limit);
}

policies::SynchronizationOptions SynchronizationOf(const v1::SynchronizationAxis& axis) {
  policies::SynchronizationOptions options;
  options.policy = Owned::Name(axis.policy());
  options.period = axis.has_initial_period() ? axis.initial_period() : axis.period();
  if (axis.has_period_max()) options.period_max = axis.period_max();
  if (axis.has_interval()) {
    options.interval_seconds = static_cast<double>(axis.interval().seconds()) +
                               1e-9 * static_cast<double>(axis.interval().nanos());
  }
  if (axis.has_loss_floor()) options.loss_floor = axis.loss_floor();
  if (axis.has_steps_max()) options.steps_max = axis.steps_max();
  return options;
}

}  // namespace

void CheckAdapt(const v1::JobSpec& spec, FieldChecks& checks) {
  const v1::Adapt& adapt = spec.adapt();
  CheckPolicy("adapt.batch.policy", *v1::BatchPolicy_descriptor(), adapt.batch().policy(), checks);
  CheckBatch(adapt.batch(), checks);
  CheckSynchronization(adapt.synchronization(), checks);
  CheckPolicy("adapt.aggregation.policy", *v1::AggregationPolicy_descriptor(),
              adapt.aggregation().policy(), checks);
  CheckLearningRate(spec, checks);
  CheckFrozen(adapt, checks);
  CheckChoices(spec, checks);
  CheckRound(spec, checks);
}

policies::PlannerOptions PlannerOptionsOf(const v1::JobSpec& spec) {
  const v1::Adapt& adapt = spec.adapt();
  const v1::BatchAxis& batch = adapt.batch();
  policies::PlannerOptions options;
  options.batch_policy =
      PolicyName(*v1::BatchPolicy_descriptor(), batch.policy(), options.batch_policy);
  if (batch.has_per_worker()) options.batch.per_worker = batch.per_worker();
  if (batch.has_min()) options.batch.batch_min = batch.min();
  if (batch.has_max()) options.batch.batch_max = batch.max();
  options.synchronization = SynchronizationOf(adapt.synchronization());
  options.aggregation_policy = PolicyName(*v1::AggregationPolicy_descriptor(),
                                          adapt.aggregation().policy(), options.aggregation_policy);
  options.learning_rate_policy =
      PolicyName(*v1::LearningRatePolicy_descriptor(), adapt.learning_rate().policy(),
                 options.learning_rate_policy);
  options.base_batch = BaseBatchOf(adapt);
  options.optimizer = OptimizerName(spec.optimizer());
  options.momentum = spec.optimizer().sgd().momentum();
  for (const AxisName& axis : kAxes) {
    if (std::ranges::find(adapt.frozen(), axis.name) != adapt.frozen().end()) {
      options.frozen.push_back(axis.axis);
    }
  }
  return options;
}

std::uint32_t WorkersOfARound(const policies::PlannerOptions& adapt) {
  const std::uint64_t samples = std::max(1u, adapt.batch.per_worker) * StepsOfARound(adapt);
  return static_cast<std::uint32_t>(policies::kRoundSamplesMax / samples);
}

}  // namespace tactus::spec
