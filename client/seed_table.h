// The same simulation under several seeds: a line each, their median and spread.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "simulator/outcome.h"

namespace tactus::client {

// Of one seed, of its first job.
struct SeedResult {
  std::uint64_t seed = 1;
  job::JobState state = job::JobState::kQueued;
  std::optional<double> seconds_to_loss{};  // nothing: not asked for, or never reached
  double train_seconds = 0;
  double samples_per_second = 0;
  double utilisation = 0;
  double train_loss = 0;
  std::uint64_t rounds = 0;
  std::uint64_t decisions = 0;
  std::uint64_t violations = 0;
};

// Requires: a job. loss: whose time is asked for.
SeedResult ResultOf(std::uint64_t seed, const simulator::Outcome& outcome,
                    std::optional<double> loss);

// How finite values lie; NaN without any.
struct Distribution {
  double median = std::numeric_limits<double>::quiet_NaN();
  double spread = std::numeric_limits<double>::quiet_NaN();  // upper quartile less lower one
};

// Quartiles between two values are interpolated: of n sorted values the quantile q lies at (n - 1)
// q, as in R's type 7. Values that are not finite are left out.
Distribution DistributionOf(std::vector<double> values);

// Requires: at least one result.
std::string SeedTable(const std::vector<SeedResult>& results);
std::string SeedJson(const std::vector<SeedResult>& results);

}  // namespace tactus::client
