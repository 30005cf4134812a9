// The names of a plan's choices, as job files, messages and people say them.

#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "policies/plan.h"

namespace tactus::policies {

// In the order of the enumerators.
inline constexpr auto kSynchronizationNames =
    std::to_array<std::string_view>({"every_step", "periodic", "delayed", "lsgd", "decentlam"});
inline constexpr auto kAggregationNames = std::to_array<std::string_view>({"average", "adasum"});
inline constexpr auto kLearningRateRuleNames =
    std::to_array<std::string_view>({"constant", "linear", "sqrt", "adascale"});
inline constexpr auto kTrialNames =
    std::to_array<std::string_view>({"none", "begins", "runs", "undone"});

constexpr std::string_view NameOf(Synchronization synchronization) {
  return kSynchronizationNames[static_cast<std::size_t>(synchronization)];
}
constexpr std::string_view NameOf(Aggregation aggregation) {
  return kAggregationNames[static_cast<std::size_t>(aggregation)];
}
constexpr std::string_view NameOf(LearningRateRule rule) {
  return kLearningRateRuleNames[static_cast<std::size_t>(rule)];
}
constexpr std::string_view NameOf(Trial trial) {
  return kTrialNames[static_cast<std::size_t>(trial)];
}

}  // namespace tactus::policies
