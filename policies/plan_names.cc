#include "policies/plan_names.h"

#include <array>
#include <cstddef>

namespace tactus::policies {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> kSynchronizations = {"every_step", "periodic", "delayed"};
constexpr std::array<std::string_view, 2> kAggregations = {"average", "adasum"};
constexpr std::array<std::string_view, 4> kRules = {"constant", "linear", "sqrt", "adascale"};

template <typename Enum, std::size_t n>
std::optional<Enum> Named(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(Synchronization synchronization) {
  return kSynchronizations[static_cast<std::size_t>(synchronization)];
}
std::string_view NameOf(Aggregation aggregation) {
  return kAggregations[static_cast<std::size_t>(aggregation)];
}
std::string_view NameOf(LearningRateRule rule) { return kRules[static_cast<std::size_t>(rule)]; }

std::optional<Synchronization> SynchronizationNamed(std::string_view name) {
  return Named<Synchronization>(kSynchronizations, name);
}
std::optional<Aggregation> AggregationNamed(std::string_view name) {
  return Named<Aggregation>(kAggregations, name);
}
std::optional<LearningRateRule> LearningRateRuleNamed(std::string_view name) {
  return Named<LearningRateRule>(kRules, name);
}

}  // namespace tactus::policies
