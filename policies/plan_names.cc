#include "policies/plan_names.h"

#include <cstddef>

namespace tactus::policies {
namespace {

template <typename Enum, std::size_t n>
std::optional<Enum> Named(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(Synchronization synchronization) {
  return kSynchronizationNames[static_cast<std::size_t>(synchronization)];
}
std::string_view NameOf(Aggregation aggregation) {
  return kAggregationNames[static_cast<std::size_t>(aggregation)];
}
std::string_view NameOf(LearningRateRule rule) {
  return kLearningRateRuleNames[static_cast<std::size_t>(rule)];
}

std::optional<Synchronization> SynchronizationNamed(std::string_view name) {
  return Named<Synchronization>(kSynchronizationNames, name);
}
std::optional<Aggregation> AggregationNamed(std::string_view name) {
  return Named<Aggregation>(kAggregationNames, name);
}
std::optional<LearningRateRule> LearningRateRuleNamed(std::string_view name) {
  return Named<LearningRateRule>(kLearningRateRuleNames, name);
}

}  // namespace tactus::policies
