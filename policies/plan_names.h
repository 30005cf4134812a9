// The names of a plan's choices, as job files, messages and people say them.

#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "policies/plan.h"

namespace tactus::policies {

// In the order of the enumerators.
inline constexpr auto kSynchronizationNames =
    std::to_array<std::string_view>({"every_step", "periodic", "delayed"});
inline constexpr auto kAggregationNames = std::to_array<std::string_view>({"average", "adasum"});
inline constexpr auto kLearningRateRuleNames =
    std::to_array<std::string_view>({"constant", "linear", "sqrt", "adascale"});

std::string_view NameOf(Synchronization synchronization);
std::string_view NameOf(Aggregation aggregation);
std::string_view NameOf(LearningRateRule rule);

// The reverse; empty for an unknown name.
std::optional<Synchronization> SynchronizationNamed(std::string_view name);
std::optional<Aggregation> AggregationNamed(std::string_view name);
std::optional<LearningRateRule> LearningRateRuleNamed(std::string_view name);

}  // namespace tactus::policies
