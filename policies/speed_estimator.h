// How fast a worker computes: samples a second, from its reports, robust to noise, quick on change.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/fields.h"
namespace tactus::policies {

// Whether it may be the logarithm of a speed that was measured, of samples/s.
bool IsLogSpeed(double log_speed);

// Estimates one worker's speed from (samples, compute seconds) pairs; x = log(samples / seconds).
//
// The estimate is the mean x over a window that grows for as long as the worker is steady, so its
// error falls as sigma / sqrt(n). The window is cut to its latest k observations when these
// disagree with the m before them, of mean M:
//
//   quick, k = 4:   all on the same side of M, beyond max(log 1.25, 3 sigma sqrt(1 + 1/m))
//   slow,  k = 64:  their mean beyond max(log 1.05, 6 sigma sqrt(1/k + 1/m)) of M, and m >= k
//
// So a change of 2x is seen in 4 rounds. On normal noise the quick test passes by chance once in
// 10^11 rounds (2 * 0.00135^4 = 7e-12), the slow one once in 5 * 10^8 (6 sigma on two sides: 2e-9).
// One outlier counts for at most kOutlierNoises sigma.
//
// sigma is the noise of one round, from differences of neighbours, (x_t - x_{t-1})^2 / 2, so that a
// shift does not pass for noise. It starts at kNoiseInitial with the weight of 4 rounds, and is
// never below kNoiseFloor, so that a quiet start does not pass for certainty.
//
// Source: design.
class SpeedEstimator {
 public:
  static constexpr std::uint32_t kFirstStepsMax = 5;
  static constexpr int kQuickRounds = 4;
  static constexpr double kQuickRatio = 1.25;
  static constexpr double kQuickNoises = 3.0;
  static constexpr int kSlowRounds = 64;
  static constexpr double kSlowRatio = 1.05;
  static constexpr double kSlowErrors = 6.0;
  static constexpr double kOutlierNoises = 4.0;
  static constexpr double kNoiseInitial = 0.10;
  static constexpr double kNoiseFloor = 0.02;
  // What a clock can measure; other times are ignored. [s]
  static constexpr double kSecondsMin = 1e-9;
  static constexpr double kSecondsMax = 1e9;

  // Folds one round in. Rounds without samples or without a measurable time are ignored: they say
  // nothing. The first one counts as often as it has steps, up to kFirstStepsMax times: a long
  // round is a mean already, and waiting for several of them would take minutes.
  void Observe(std::uint64_t samples, double compute_seconds, std::uint32_t steps = 1);

  // Observations in the window now.
  int observations() const { return older_count_ + static_cast<int>(recent_.size()); }

  // Samples a second; 0 before the first observation.
  double SamplesPerSecond() const;

  // sigma: one standard deviation of one round's log(speed), i.e. its relative noise.
  double Noise() const;

  // One standard error of log(SamplesPerSecond()), Noise() / sqrt(n), i.e. the relative error; 1
  // with fewer than 2 observations.
  double RelativeError() const;

  friend void Fields(auto& archive, Of<SpeedEstimator> auto& estimator) {
    archive("older_count", estimator.older_count_);
    archive("older_sum", estimator.older_sum_);
    archive("recent", estimator.recent_);
    archive("recent_sum", estimator.recent_sum_);
    archive("noise2", estimator.noise2_);
    archive("differences", estimator.differences_);
  }
  friend bool Sound(const SpeedEstimator& estimator);

 private:
  struct Observation {
    double log_speed = 0;          // as measured
    double log_speed_clipped = 0;  // at most kOutlierNoises sigma off the estimate of its time

    friend void Fields(auto& archive, Of<Observation> auto& observation) {
      archive("log_speed", observation.log_speed);
      archive("log_speed_clipped", observation.log_speed_clipped);
    }
  };

  void Fold(double log_speed);
  double Mean() const;
  void FoldNoise(double log_speed);
  void CutOnShift();
  double SumOfRecent() const;
  bool QuickShift() const;
  bool SlowShift() const;
  void CutTo(std::size_t rounds);

  // Older observations as a sum, then the latest, at most kSlowRounds, oldest first.
  int older_count_ = 0;
  double older_sum_ = 0;
  std::deque<Observation> recent_;
  double recent_sum_ = 0;  // of recent_; its rounding error stays below 1e-12 in 10^9 rounds
  double noise2_ = kNoiseInitial * kNoiseInitial;
  int differences_ = 0;
};

}  // namespace tactus::policies
