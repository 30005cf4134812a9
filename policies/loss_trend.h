// How a loss falls, and whether it falls as it did before.

#pragma once

#include <vector>

#include "base/fields.h"
namespace tactus::policies {

// The loss at some time of training.
struct LossAt {
  double seconds = 0;  // > 0: training time
  double loss = 0;
};

// The least-squares line of y = ln(loss - floor) over x = ln(seconds), in which a loss that falls
// by a power of time is straight: it does not look ever slower by its nature alone.
struct LossTrend {
  static constexpr int kPointsMin = 4;

  int points = 0;
  double center = 0;  // mean x
  double mean = 0;    // mean y
  double fall = 0;    // -dy/dx, the power
  // One standard error each, from the spread around the line; infinite with fewer than kPointsMin.
  double mean_error = 0;
  double fall_error = 0;
};
void Fields(auto& archive, Of<LossTrend> auto& trend) {
  archive("points", trend.points);
  archive("center", trend.center);
  archive("mean", trend.mean);
  archive("fall", trend.fall);
  archive("mean_error", trend.mean_error);
  archive("fall_error", trend.fall_error);
}

// points  those with loss <= floor or seconds <= 0 are left out
// floor   F_inf, that the loss never falls below
LossTrend FitLoss(const std::vector<LossAt>& points, double floor);

// Whether the loss fell less than it would have by going on as before:
//
//   y_before - y_after < (1 - kLagMargin) f (x_after - x_before) - kLagErrors e - kLagOffset
//
// f  before.fall, at least 0;  e  the standard error of the difference of both sides
// kLagOffset  [1]  of the loss: between kinds of rounds it is not measured quite alike (periodic
//             rounds see that of parameters which are not averaged yet)
//
// False while either trend has fewer than kPointsMin points.
//
// Source: design.
bool Lags(const LossTrend& before, const LossTrend& after);

inline constexpr double kLagMargin = 0.25;
inline constexpr double kLagErrors = 3;
inline constexpr double kLagOffset = 0.02;

}  // namespace tactus::policies
