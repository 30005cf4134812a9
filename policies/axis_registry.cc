#include "policies/axis_registry.h"

#include <utility>

#include "policies/adacomm_synchronization.h"
#include "policies/auto_aggregation.h"
#include "policies/auto_learning_rate.h"
#include "policies/auto_synchronization.h"
#include "policies/batch_axis.h"
#include "policies/fixed_policies.h"
#include "policies/goodput_batch.h"
#include "policies/micro_batch.h"
#include "policies/plan_names.h"
#include "policies/proportional_batch.h"

namespace tactus::policies {
namespace {

using Made = std::unique_ptr<AxisPolicy>;

Made MakeBatch(const PlannerOptions& options) {
  const BatchOptions& batch = options.batch;
  if (options.batch_policy == "abs") {
    return std::make_unique<MicroBatch>(
        batch, std::make_unique<BatchAxis>(std::make_unique<ProportionalBatch>(batch)));
  }
  if (options.batch_policy == "auto") {
    return std::make_unique<MicroBatch>(batch,
                                        std::make_unique<GoodputBatch>(batch, options.base_batch));
  }
  std::unique_ptr<BatchPolicy> policy = MakeBatchPolicy(options.batch_policy, batch);
  if (policy == nullptr) return nullptr;
  return std::make_unique<BatchAxis>(std::move(policy));
}

Made MakeSynchronization(const PlannerOptions& options) {
  const SynchronizationOptions& wanted = options.synchronization;
  if (wanted.policy == "auto") return std::make_unique<AutoSynchronization>(options);
  if (wanted.policy == "adacomm") return std::make_unique<AdacommSynchronization>(wanted);
  const std::optional<Synchronization> fixed = SynchronizationNamed(wanted.policy);
  if (!fixed) return nullptr;
  return std::make_unique<FixedSynchronization>(
      *fixed, *fixed == Synchronization::kDelayed ? wanted.steps_max : wanted.period);
}

Made MakeAggregation(const PlannerOptions& options) {
  if (options.aggregation_policy == "auto") {
    return std::make_unique<AutoAggregation>(options.base_batch);
  }
  const std::optional<Aggregation> fixed = AggregationNamed(options.aggregation_policy);
  return fixed ? std::make_unique<FixedAggregation>(*fixed) : nullptr;
}

Made MakeLearningRate(const PlannerOptions& options) {
  if (options.learning_rate_policy == "auto") {
    return std::make_unique<AutoLearningRate>(options.optimizer);
  }
  const std::optional<LearningRateRule> fixed = LearningRateRuleNamed(options.learning_rate_policy);
  return fixed ? std::make_unique<FixedLearningRate>(*fixed) : nullptr;
}

}  // namespace

std::unique_ptr<AxisPolicy> MakeAxisPolicy(Axis axis, const PlannerOptions& options) {
  switch (axis) {
    case Axis::kBatch:
      return MakeBatch(options);
    case Axis::kSynchronization:
      return MakeSynchronization(options);
    case Axis::kAggregation:
      return MakeAggregation(options);
    case Axis::kLearningRate:
      return MakeLearningRate(options);
  }
  return nullptr;
}

std::vector<std::string> PolicyNames(Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return {"abs", "auto", "fixed", "proportional"};
    case Axis::kSynchronization:
      return {"adacomm", "auto", "delayed", "every_step", "periodic"};
    case Axis::kAggregation:
      return {"adasum", "auto", "average"};
    case Axis::kLearningRate:
      return {"adascale", "auto", "constant", "linear", "sqrt"};
  }
  return {};
}

}  // namespace tactus::policies
