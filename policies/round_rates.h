// What a group got done in a second, over a span of rounds.

#pragma once

#include <optional>

#include "policies/observations.h"

namespace tactus::policies {

// Metrics of decisions.
inline constexpr char kSamplesPerSecond[] = "samples/s";
inline constexpr char kUsefulSamplesPerSecond[] = "useful samples/s";
inline constexpr char kLossFall[] = "loss";

// The sum of samples over the sum of seconds. Empty without rounds or samples.
std::optional<double> SamplesPerSecond(const Observations& seen, const Observations::Range& range);

// The same of UsefulSamples, by the rule that each round ran with. An update is a round, or one
// local step of a periodic one.
//
// base_batch   [samples]  > 0
// noise_scale  [samples]  that of the gradients, if known; only rates by the same one compare
std::optional<double> UsefulSamplesPerSecond(const Observations& seen,
                                             const Observations::Range& range, double base_batch,
                                             std::optional<double> noise_scale);

}  // namespace tactus::policies
