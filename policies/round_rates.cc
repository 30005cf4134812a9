#include "policies/round_rates.h"

#include <algorithm>

#include "policies/useful_samples.h"

namespace tactus::policies {
namespace {

// measure: samples that one round counts for.
template <typename Measure>
std::optional<double> PerSecond(const Observations& seen, const Observations::Range& range,
                                Measure measure) {
  double seconds = 0;
  double samples = 0;
  for (std::size_t at = range.from; at < range.to; ++at) {
    seconds += seen.rounds()[at].seconds;
    samples += measure(seen.rounds()[at]);
  }
  return seconds > 0 && samples > 0 ? std::optional(samples / seconds) : std::nullopt;
}

}  // namespace

std::optional<double> SamplesPerSecond(const Observations& seen, const Observations::Range& range) {
  return PerSecond(seen, range,
                   [](const WholeRound& round) { return static_cast<double>(round.samples); });
}

std::optional<double> UsefulSamplesPerSecond(const Observations& seen,
                                             const Observations::Range& range, double base_batch,
                                             std::optional<double> noise_scale) {
  return PerSecond(seen, range, [&](const WholeRound& round) {
    if (round.samples == 0) return 0.0;
    const bool periodic = round.synchronization == Synchronization::kPeriodic;
    const double updates = periodic ? std::max(round.steps, 1u) : 1;
    return updates * UsefulSamples(static_cast<double>(round.samples) / updates,
                                   {.rule = round.learning_rate_rule,
                                    .base_batch = base_batch,
                                    .noise_scale = noise_scale});
  });
}

}  // namespace tactus::policies
