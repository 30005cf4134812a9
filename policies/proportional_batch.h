// Batch sizes in proportion to measured speed, so that unequal workers finish a round together.

#pragma once

#include <cstdint>
#include <vector>

#include "policies/batch_policy.h"
#include "policies/speed_estimator.h"

namespace tactus::policies {

// The shares b_i of a total B that minimise the longest compute time max_i b_i / v_i:
//
//   b_i = B v_i / sum_j v_j, rounded by largest remainder, within [batch_min, batch_max]
//
// speeds  [samples/s]  one a rank, each > 0
// total   [samples]    clamped to what the bounds allow, [n batch_min, n batch_max]
// Returns one size a rank; their sum is the clamped total. Ties go to the lower rank.
//
// Source: design; the balance condition is elementary.
std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds, std::uint64_t total,
                                              const BatchOptions& options);

// Proposes ProportionalShares of the estimated speeds once every member was seen `kObservationsMin`
// rounds, and only if the predicted gain exceeds both `kGainMin` and what the speeds' own errors explain
// (`kErrorsMin` standard errors of the slowest share): so it reacts to a change of 2x within 10 rounds and
// never flaps on noise.
//
// Source: design.
class ProportionalBatch final : public BatchPolicy {
 public:
  static constexpr int kObservationsMin = 3;
  static constexpr double kGainMin = 0.03;
  static constexpr double kErrorsMin = 3.0;

  explicit ProportionalBatch(const BatchOptions& options);

  BatchDecision Start(std::uint32_t members) override;
  void Observe(const Report& report) override;
  BatchDecision Decide(const std::vector<std::uint32_t>& in_force) override;

 private:
  const BatchOptions options_;
  std::vector<SpeedEstimator> speeds_;  // one a rank
};

}  // namespace tactus::policies
