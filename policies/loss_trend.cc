#include "policies/loss_trend.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tactus::policies {

LossTrend FitLoss(const std::vector<LossAt>& points, double floor) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<LossAt> logs;
  logs.reserve(points.size());
  LossTrend trend{.mean_error = kInfinity, .fall_error = kInfinity};
  for (const LossAt& point : points) {
    if (!(point.loss > floor) || !(point.seconds > 0) || !std::isfinite(point.loss)) continue;
    logs.push_back({.seconds = std::log(point.seconds), .loss = std::log(point.loss - floor)});
    trend.center += logs.back().seconds;
    trend.mean += logs.back().loss;
  }
  if (logs.empty()) return trend;
  trend.points = static_cast<int>(logs.size());
  trend.center /= trend.points;
  trend.mean /= trend.points;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const LossAt& point : logs) {
    const double x = point.seconds - trend.center;
    const double y = point.loss - trend.mean;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  if (trend.points < LossTrend::kPointsMin || !(xx > 0)) return trend;
  // The line takes two of the degrees of freedom. Rounding can make the rest of a perfect fit
  // negative.
  const double variance = std::max(yy - xy * xy / xx, 0.0) / (trend.points - 2);
  trend.fall = -xy / xx;
  trend.fall_error = std::sqrt(variance / xx);
  trend.mean_error = std::sqrt(variance / trend.points);
  return trend;
}

bool Lags(const LossTrend& before, const LossTrend& after) {
  if (before.points < LossTrend::kPointsMin || after.points < LossTrend::kPointsMin) return false;
  const double way = after.center - before.center;
  const double kept = 1 - kLagMargin;
  // At its centre a least-squares line's height and slope are uncorrelated: errors add as squares.
  const double error =
      std::hypot(std::hypot(before.mean_error, after.mean_error), kept * way * before.fall_error);
  const double expected = kept * std::max(before.fall, 0.0) * way;
  return before.mean - after.mean < expected - kLagErrors * error - kLagOffset;
}

}  // namespace tactus::policies
