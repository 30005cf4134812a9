// Batch sizes in proportion to measured speed, so that unequal workers finish a round together.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/plan.h"
#include "policies/planner_options.h"
#include "policies/speed_estimator.h"

namespace tactus::policies {

// The shares b_i of a total B that minimise the longest compute time max_i b_i / v_i, within
// bounds:
//
//   b_i = floor(T v_i) within [batch_min, batch_max], T the largest time with sum_i b_i <= B;
//   each sample left over goes where it is done soonest, least (b_i + 1) / v_i
//
// speeds  [samples/s]  one a rank, each > 0 and finite
// total   [samples]    clamped to what the bounds allow, [n batch_min, n batch_max]
// Returns one size a rank; their sum is the clamped total. Ties go to the lower rank. Without
// bounds b_i is at least floor(B v_i / sum_j v_j).
//
// Source: design. The least (b_i + 1) / v_i each time minimises the maximum, as an exchange shows.
std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds,
                                              std::uint64_t total, const BatchOptions& options);

// A decision about the batch sizes. Empty `batch_sizes` means "leave it as it is".
struct BatchDecision {
  std::vector<std::uint32_t> batch_sizes{};  // one a rank
  std::string reason{};                      // never empty
  double predicted_gain = 0;  // relative fall of the round's compute time, 0.25 = a quarter shorter
};

// Starts with ProportionalShares of the speeds that the workers tried out before the first round,
// or equal ones. Then proposes ProportionalShares of the estimated speeds, once every member was
// seen kObservationsMin rounds, if that is worth it and not an effect of noise:
//
//   gain(v) = 1 - longest(b'(v), v) / longest(b, v),   longest(b, v) = max_i b_i / v_i
//   gain(v) > least and gain(u) > 0
//
// b      sizes in force;  b'(v)  ProportionalShares of v
// v      [samples/s]  the estimated speeds
// u      [samples/s]  speeds that speak for b: each v_i moved by at most kErrorsMin standard errors
//                     towards b_i sum_j v_j / B, for which b_i is right
//
// While a worker is steady its standard error falls as 1/sqrt(rounds), so later proposals correct
// the first and then end. With noise of 10 % the first comes after 5 rounds, with speeds good
// to 4.5 %; after 200 rounds (0.7 %) a correction above kGainMin is rare, and a way back to former
// sizes is 4 standard errors long. After a change of 2x the 4 latest rounds make a new window, a
// fifth decides.
//
// Where a batch costs a fixed time beside the time of its samples, the measured speed falls with
// the batch: each proposal goes a part of the way, always towards equal times.
//
// Noise that lasts for many rounds (a neighbour's load, heat) is not noise to the standard errors.
// So `least` is kGainMin at first, grows by kRestlessness with every proposal that gains less than
// kGainLarge, up to kGainLarge, and comes back with a half-life of kRestRounds: small corrections
// get rarer the more of them there are, while a real change, which gains more, is acted on at once.
//
// Pure and total: every report may be folded in, every question has an answer. Not thread-safe.
//
// Source: design.
class ProportionalBatch {
 public:
  static constexpr int kObservationsMin = 5;
  static constexpr double kGainMin = 0.03;
  static constexpr double kErrorsMin = 2.5;
  static constexpr double kGainLarge = 0.10;
  static constexpr double kRestlessness = 1.5;
  static constexpr double kRestRounds = 200;

  explicit ProportionalBatch(const BatchOptions& options) : options_(options) {}

  // A (new) group starts; what was learned of former ranks is forgotten. Returns the sizes to start
  // with.
  BatchDecision Start(const StartingGroup& group);

  // Folds one worker's report in.
  void Observe(const Report& report);

  // Proposes sizes given those in force, or leaves them. The caller asks when the former plan is in
  // force everywhere, so that a proposal is never made on top of one that is still travelling.
  BatchDecision Decide(const std::vector<std::uint32_t>& in_force);

  // Samples of a step from now on, until a new group starts.
  void SetTotal(std::uint64_t total) { total_ = total; }

 private:
  // A proposal of this gain is made: small ones get rarer.
  void Tire(double gain);
  // The estimates, each moved towards the speed for which its size in force is right.
  std::vector<double> SpeedsInFavourOf(const std::vector<std::uint32_t>& in_force) const;

  const BatchOptions options_;
  std::vector<SpeedEstimator> speeds_;  // one a rank
  std::uint64_t total_ = 0;             // [samples] of a step
  double gain_least_ = kGainMin;
};

}  // namespace tactus::policies
