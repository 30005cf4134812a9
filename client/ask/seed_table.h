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
  // NaN: not asked for; infinite: never reached.
  double seconds_to_loss = std::numeric_limits<double>::quiet_NaN();
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

// How values lie; NaN without any.
struct Distribution {
  double median = std::numeric_limits<double>::quiet_NaN();
  // Upper quartile less lower one; NaN when one of them is infinite.
  double spread = std::numeric_limits<double>::quiet_NaN();
};

// Quartiles between two values are interpolated: of n sorted values the quantile q lies at (n - 1)
// q, as in R's type 7. NaN is left out; infinite values count, so that the median of values most of
// which are infinite is infinite.
Distribution DistributionOf(std::vector<double> values);

// A line a seed, then median and spread. Those of the time to the loss are of all seeds; all others
// are of the seeds whose job succeeded, because a job that failed early was not slow. Lines below
// say how many seeds that was. Requires: at least one result.
std::string SeedTable(const std::vector<SeedResult>& results);

// The same as one object; a time to a loss that was not reached is null.
std::string SeedJson(const std::vector<SeedResult>& results);

}  // namespace tactus::client
