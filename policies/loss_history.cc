#include "policies/loss_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tactus::policies {

double LossLine::ErrorAt(double log_seconds) const {
  const double way = log_seconds - center;
  return way == 0 ? mean_error : std::hypot(mean_error, way * fall_error);
}

void LossHistory::Add(std::uint64_t version, double seconds, double loss) {
  const bool fresh = stretches_.empty() || stretches_.back().version != version ||
                     seconds > stretches_.back().begin * (1 + kStretch);
  if (fresh) stretches_.push_back({.version = version, .begin = seconds});
  if (stretches_.size() > kStretchesMax) stretches_.pop_front();
  Stretch& stretch = stretches_.back();
  ++stretch.rounds;
  stretch.log_seconds += std::log(seconds);
  stretch.loss += loss;
  stretch.loss2 += loss * loss;
}

LossLine LossHistory::Fit(const Span& span) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto in = [&](const Stretch& stretch) {
    return stretch.version >= span.first && stretch.version < span.end && stretch.begin > span.from;
  };
  LossLine line{.mean_error = kInfinity, .fall_error = kInfinity, .spread = kInfinity};
  double rounds = 0;
  for (const Stretch& stretch : stretches_) {
    if (!in(stretch)) continue;
    rounds += stretch.rounds;
    line.center += stretch.log_seconds;
    line.mean += stretch.loss;
  }
  if (rounds == 0) return line;
  line.rounds = static_cast<std::uint64_t>(rounds);
  line.center /= rounds;
  line.mean /= rounds;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const Stretch& stretch : stretches_) {
    if (!in(stretch)) continue;
    const double x = stretch.log_seconds / stretch.rounds - line.center;
    xx += stretch.rounds * x * x;
    xy += x * (stretch.loss - stretch.rounds * line.mean);
    yy += stretch.loss2 - 2 * line.mean * stretch.loss + stretch.rounds * line.mean * line.mean;
  }
  if (line.rounds < kRoundsMin || !(xx > 0)) return line;
  // The line takes two of the degrees of freedom. Rounding can make the rest of a perfect fit
  // negative.
  const double variance = std::max(yy - xy * xy / xx, 0.0) / (rounds - 2);
  line.fall = -xy / xx;
  line.fall_error = std::sqrt(variance / xx);
  line.mean_error = std::sqrt(variance / rounds);
  line.spread = std::sqrt(variance);
  return line;
}

}  // namespace tactus::policies
