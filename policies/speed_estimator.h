// How fast a worker computes: samples a second, from its reports, robust to noise and quick on change.

#pragma once

#include <cstdint>
#include <deque>

namespace tactus::policies {

// Estimates one worker's speed from (samples, compute seconds) pairs.
//
// The estimate is the mean log-speed over a window that grows while the worker is steady, so its error
// falls as 1/sqrt(n), and that shrinks to the latest `kShiftRounds` observations once all of these lie on
// the same side of the older ones' mean by more than `kShiftRatio`: a change of 2x is seen in 4 rounds,
// while noise of 10 % passes for a change about once in 10^8 rounds (4 consecutive draws beyond 2.2 sigma
// of the same side: 2 * 0.013^4 = 6e-8).
//
// Source: design.
class SpeedEstimator {
 public:
  static constexpr int kShiftRounds = 4;
  static constexpr double kShiftRatio = 1.25;
  static constexpr int kWindowRounds = 64;

  // Folds one round in. Rounds without samples or without time are ignored: they say nothing.
  void Observe(std::uint64_t samples, double compute_seconds);

  // Observations in the window now.
  int observations() const { return static_cast<int>(log_speeds_.size()); }

  // Samples a second; 0 before the first observation.
  double SamplesPerSecond() const;

  // One standard error of log(SamplesPerSecond()), i.e. the relative error; 1 with fewer than 2
  // observations. Never below kErrorFloor / sqrt(n), so that a quiet start does not pass for certainty.
  double RelativeError() const;
  static constexpr double kErrorFloor = 0.02;

 private:
  double Mean() const;

  std::deque<double> log_speeds_;  // at most kWindowRounds, oldest first
};

}  // namespace tactus::policies
