#include "policies/planner_options.h"

namespace tactus::policies {
namespace {

template <typename Options>
auto& NameIn(Options& options, Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return options.batch_policy;
    case Axis::kSynchronization:
      return options.synchronization.policy;
    case Axis::kAggregation:
      return options.aggregation_policy;
    case Axis::kLearningRate:
      return options.learning_rate_policy;
    case Axis::kEncoding:
      break;
  }
  return options.encoding_policy;
}

}  // namespace

std::string& PolicyOf(PlannerOptions& options, Axis axis) { return NameIn(options, axis); }

const std::string& PolicyOf(const PlannerOptions& options, Axis axis) {
  return NameIn(options, axis);
}

}  // namespace tactus::policies
