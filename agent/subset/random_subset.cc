#include "agent/subset/random_subset.h"

#include <algorithm>
#include <cmath>

#include "agent/engine/samples/permutation.h"
#include "base/check.h"
#include "base/rng.h"

namespace tactus::subset {

std::uint64_t SizeOf(std::uint64_t samples, double fraction) {
  TACTUS_CHECK(samples >= 1 && fraction > 0 && fraction <= 1);
  const double part = std::round(static_cast<double>(samples) * fraction);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(part), 1, samples);
}

engine::Subset DrawSubset(std::uint64_t samples, std::uint64_t size, std::uint64_t seed,
                          std::uint64_t number) {
  const engine::EpochPermutation order(samples, Rng(seed).Fork("subset").Next(), number);
  engine::Subset subset{.number = number};
  for (std::uint64_t i = 0; i < size; ++i) subset.samples.push_back(order.At(i));
  std::ranges::sort(subset.samples);
  return subset;
}

}  // namespace tactus::subset
