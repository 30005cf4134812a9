// When a job will be over, as far as that can be foretold.

#pragma once

#include <optional>

#include "coordinator/job/records.h"

namespace tactus::job {

// Seconds until the nearest stop condition that can be foretold:
//
//   time     stop_time - elapsed
//   epochs   (stop_epochs epoch_samples - samples) / samples_per_second
//   rounds   (stop_rounds - rounds) round_seconds
//
// round_seconds  [s]  mean length of the last rounds; 0: not known
// Returns a value >= 0, or nothing: a loss cannot be foretold.
//
// Source: design.
std::optional<double> ForeseeEnd(const JobSettings& settings, const Progress& progress,
                                 double round_seconds);

}  // namespace tactus::job
