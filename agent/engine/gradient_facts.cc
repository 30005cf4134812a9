#include "agent/engine/gradient_facts.h"

namespace tactus::engine {

std::uint32_t ContributorsOf(const Round& round) {
  return round.sums_norm2 ? 2 : round.spread.contributors;
}

policies::UpdateFacts GradientFactsOf(const Round& round, const Combined& combined) {
  if (!(round.gradient_length > 0)) return {.contributors = round.spread.contributors};
  const double scale = 1 / (round.gradient_length * round.gradient_length);
  const double norm2 = round.sums_norm2.value_or(combined.lanes.samples_gradient_norm2);
  const bool mean = round.aggregation == policies::Aggregation::kAverage;
  const double share = mean ? round.gradient_share : 0;
  const bool tells = policies::TellsNoise(round.encoding);
  return {.samples = tells ? share * combined.lanes.samples : 0,
          .contributors = ContributorsOf(round),
          .samples_gradient_norm2 = scale * (mean ? share : 1) * norm2,
          .gradient_norm2 = scale * combined.norm2};
}

}  // namespace tactus::engine
