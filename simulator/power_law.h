// How a loss falls with the samples seen, as a law that can be continued.

#pragma once

#include <cstddef>
#include <span>

namespace tactus::simulator {

// The loss after so many samples.
struct LossPoint {
  double samples = 0;  // >= 0
  double loss = 0;     // finite
};

// loss(n) = floor + scale (n / reference)^-exponent
struct PowerLaw {
  double floor = 0;      // of the loss, approached from above
  double scale = 0;      // loss above the floor at `reference` samples, >= 0; 0: a constant
  double reference = 1;  // [samples] the fit's last one, > 0
  double exponent = 1;   // in [kExponentMin, kExponentMax]
  double residual = 0;   // root mean square of the points' distances from the law

  // samples > 0.
  double At(double samples) const;
};

inline constexpr double kExponentMin = 0.01;
inline constexpr double kExponentMax = 4;
inline constexpr std::size_t kFitPointsMin = 4;  // one more than the law has free parameters

// The law of least squares with scale >= 0 and, where no loss is negative, floor >= 0. Points
// without samples are left out. Total: points that do not fall, or fewer than kFitPointsMin, give
// the constant at their mean; no points give 0.
//
// For a given exponent the best floor and scale are a linear regression; the exponent itself is
// searched on a grid of its logarithm and refined by golden sections around the best.
// points: in any order. O(100 points).
//
// Source: design.
PowerLaw FitPowerLaw(std::span<const LossPoint> points);

}  // namespace tactus::simulator
