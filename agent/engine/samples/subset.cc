#include "agent/engine/samples/subset.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tactus::engine {

std::string ReasonAgainst(const Subset& subset, std::uint64_t epoch_size) {
  if (subset.number == 0) {
    return subset.samples.empty() && subset.weights.empty() ? "" : "its subset was never chosen";
  }
  if (subset.kind > SubsetKind::kCraig) return "its subset is of no kind that there is";
  if (subset.samples.size() != epoch_size) {
    return "its subset has " + std::to_string(subset.samples.size()) + " samples, an epoch " +
           std::to_string(epoch_size);
  }
  if (!subset.weights.empty() && subset.weights.size() != epoch_size) {
    return "its subset has " + std::to_string(subset.weights.size()) + " weights for " +
           std::to_string(epoch_size) + " samples";
  }
  const auto no_weight = [](float weight) { return !std::isfinite(weight) || weight <= 0; };
  if (std::ranges::any_of(subset.weights, no_weight)) {
    return "a weight of its subset is not a number above 0";
  }
  const bool rises =
      std::ranges::adjacent_find(subset.samples, std::greater_equal<>()) == subset.samples.end();
  return rises ? "" : "the samples of its subset do not rise";
}

}  // namespace tactus::engine
