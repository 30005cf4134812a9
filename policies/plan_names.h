// The names of a plan's choices, as job files, messages and people say them.

#pragma once

#include <optional>
#include <string_view>

#include "policies/plan.h"

namespace tactus::policies {

// "every_step", "periodic", "delayed".
std::string_view NameOf(Synchronization synchronization);
// "average", "adasum".
std::string_view NameOf(Aggregation aggregation);
// "constant", "linear", "sqrt", "adascale".
std::string_view NameOf(LearningRateRule rule);

// The reverse; empty for an unknown name.
std::optional<Synchronization> SynchronizationNamed(std::string_view name);
std::optional<Aggregation> AggregationNamed(std::string_view name);
std::optional<LearningRateRule> LearningRateRuleNamed(std::string_view name);

}  // namespace tactus::policies
