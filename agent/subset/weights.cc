#include "agent/subset/weights.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace tactus::subset {

void HoldBelow(std::span<double> weights, double most) {
  TACTUS_CHECK(most > 0);
  std::vector<double> falling(weights.begin(), weights.end());
  std::ranges::sort(falling, std::greater<>());
  if (falling.empty() || falling.front() <= most) return;
  const double sum = std::accumulate(falling.begin(), falling.end(), 0.0);
  // Cut are the longest that exceed the bound once the others have grown by what these lose.
  double left = sum;
  double scale = 1;
  std::size_t cut = 0;
  while (cut < falling.size() && scale * falling[cut] > most) {
    left -= falling[cut];
    ++cut;
    scale = left > 0 ? (sum - most * static_cast<double>(cut)) / left : 0;
  }
  if (cut == falling.size()) most = sum / static_cast<double>(cut);
  const double least_cut = falling[cut - 1];
  for (double& weight : weights) weight = weight >= least_cut ? most : scale * weight;
}

double EffectiveCount(std::span<const float> weights) {
  double sum = 0;
  double squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

}  // namespace tactus::subset
