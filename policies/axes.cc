#include "policies/axes.h"

#include <algorithm>

#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

std::string Listed(const std::vector<std::uint32_t>& sizes, char between) {
  std::string list;
  for (const std::uint32_t size : sizes) {
    if (!list.empty()) list += between;
    list += std::to_string(size);
  }
  return list;
}

}  // namespace

std::string_view FieldOf(Axis axis) { return kAxisFields[static_cast<std::size_t>(axis)]; }

std::string NameOf(Axis axis) {
  std::string name(FieldOf(axis));
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string ValueOf(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return Listed(plan.batch_sizes, ' ');
    case Axis::kSynchronization:
      return std::string(NameOf(plan.synchronization)) +
             (plan.synchronization == Synchronization::kPeriodic ? " " + std::to_string(plan.period)
                                                                 : "");
    case Axis::kAggregation:
      return std::string(NameOf(plan.aggregation));
    case Axis::kLearningRate:
      return std::string(NameOf(plan.learning_rate_rule));
  }
  return {};
}

std::vector<PlanRow> RowsOf(const Plan& plan) {
  return {{"batch_sizes", "batch sizes", plan.batch_sizes},
          {"synchronization", "synchronization", NameOf(plan.synchronization)},
          {"period", "period", plan.period},
          {"aggregation", "aggregation", NameOf(plan.aggregation)},
          {"learning_rate_rule", "learning rate", NameOf(plan.learning_rate_rule)}};
}

std::string TextOf(const PlanValue& value) {
  if (const auto* choice = std::get_if<std::string_view>(&value)) return std::string(*choice);
  if (const auto* number = std::get_if<std::uint32_t>(&value)) return std::to_string(*number);
  return Listed(std::get<std::vector<std::uint32_t>>(value), ',');
}

std::vector<std::string> ChoicesOf(const std::vector<PlanRow>& rows) {
  std::vector<std::string> choices;
  for (const PlanRow& row : rows) {
    if (const auto* choice = std::get_if<std::string_view>(&row.value))
      choices.emplace_back(*choice);
    const auto* number = std::get_if<std::uint32_t>(&row.value);
    if (number != nullptr && *number > 1) choices.back() += " " + TextOf(row.value);
  }
  return choices;
}

}  // namespace tactus::policies
