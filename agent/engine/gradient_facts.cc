#include "agent/engine/gradient_facts.h"

namespace tactus::engine {

policies::UpdateFacts GradientFactsOf(const Round& round, const Combined& combined) {
  if (!(round.gradient_length > 0)) return {.contributors = round.spread.contributors};
  const double scale = 1 / (round.gradient_length * round.gradient_length);
  const bool mean = round.aggregation == policies::Aggregation::kAverage;
  const double share = mean ? round.gradient_share : 0;
  return {
      .samples = share * combined.lanes.samples,
      .contributors = round.spread.contributors,
      .samples_gradient_norm2 = scale * (mean ? share : 1) * combined.lanes.samples_gradient_norm2,
      .gradient_norm2 = scale * combined.norm2};
}

}  // namespace tactus::engine
