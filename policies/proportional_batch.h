// Batch sizes in proportion to measured speed, so that unequal workers finish a round together.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/batch_policy.h"
#include "policies/speed_estimator.h"

namespace tactus::policies {

// The shares b_i of a total B that minimise the longest compute time max_i b_i / v_i, within the
// bounds:
//
//   b_i = floor(T v_i) within [batch_min, batch_max], T the largest time for which sum_i b_i <= B;
//   each sample left over goes where it is done soonest, least (b_i + 1) / v_i
//
// speeds  [samples/s]  one a rank, each > 0 and finite
// total   [samples]    clamped to what the bounds allow, [n batch_min, n batch_max]
// Returns one size a rank; their sum is the clamped total. Ties go to the lower rank. Without
// bounds b_i is at least floor(B v_i / sum_j v_j).
//
// Source: design; taking the least (b_i + 1) / v_i each time minimises the maximum, as an exchange
// shows.
std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds,
                                              std::uint64_t total, const BatchOptions& options);

// Proposes ProportionalShares of the estimated speeds, once every member was seen kObservationsMin
// rounds, if that is worth it and not an effect of noise:
//
//   gain(v)  = 1 - max_i b'_i(v) / v_i  /  max_i b_i / v_i     b in force, b'(v) ProportionalShares
//   of v gain(v^) > kGainMin                                        v^ the estimates gain(v~) > 0
//   v~ the estimates, each moved by at most
//                                                              kErrorsMin standard errors towards
//                                                              the speed for which its b_i is
//                                                              right, b_i sum v^ / B
//
// While a worker is steady its standard error falls as 1/sqrt(rounds), so proposals correct the
// first guesses and then end; after a change of 2x the four latest rounds alone are outside the
// noise. Where a batch costs a fixed time beside the time of its samples, each proposal goes a part
// of the way (the measured speed falls with the batch), always towards equal times.
//
// Source: design.
class ProportionalBatch final : public BatchPolicy {
 public:
  static constexpr int kObservationsMin = 4;
  static constexpr double kGainMin = 0.03;
  static constexpr double kErrorsMin = 3.0;

  explicit ProportionalBatch(const BatchOptions& options) : options_(options) {}

  BatchDecision Start(std::uint32_t members) override;
  void Observe(const Report& report) override;
  BatchDecision Decide(const std::vector<std::uint32_t>& in_force) override;

 private:
  std::uint64_t Total() const;
  // The estimates, each moved towards the speed for which its size in force is right.
  std::vector<double> SpeedsInFavourOf(const std::vector<std::uint32_t>& in_force) const;

  const BatchOptions options_;
  std::vector<SpeedEstimator> speeds_;  // one a rank
};

}  // namespace tactus::policies
