#include "simulator/power_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "simulator/elementary.h"

namespace tactus::simulator {
namespace {

constexpr int kGrid = 40;      // exponents, each 1.17 times the last
constexpr int kSections = 40;  // leave 2 ln 1.17 times 0.618^40: 1e-9 of the exponent

// What the points are regressed on.
struct Curve {
  std::vector<double> logarithms{};  // ln(samples / reference)
  std::vector<double> losses{};
  double reference = 0;
  bool negative = false;  // some loss is
};

Curve CurveOf(std::span<const LossPoint> points) {
  Curve curve;
  for (const LossPoint& point : points) curve.reference = std::max(curve.reference, point.samples);
  for (const LossPoint& point : points) {
    if (point.samples <= 0) continue;
    curve.logarithms.push_back(Logarithm(point.samples / curve.reference));
    curve.losses.push_back(point.loss);
    curve.negative = curve.negative || point.loss < 0;
  }
  return curve;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The best floor and scale for powers x of the samples, before `residual` is known.
PowerLaw Regress(const Curve& curve, const std::vector<double>& powers) {
  const double mean_x = Mean(powers);
  const double mean_y = Mean(curve.losses);
  double xx = 0;  // around the means
  double xy = 0;
  double xx_origin = 0;
  double xy_origin = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const double x = powers[i] - mean_x;
    xx += x * x;
    xy += x * (curve.losses[i] - mean_y);
    xx_origin += powers[i] * powers[i];
    xy_origin += powers[i] * curve.losses[i];
  }
  PowerLaw law{.floor = mean_y, .reference = curve.reference};
  if (!(xx > 0) || xy <= 0) return law;
  law.scale = xy / xx;
  law.floor = mean_y - law.scale * mean_x;
  if (law.floor < 0 && !curve.negative) {
    law.floor = 0;
    law.scale = xy_origin / xx_origin;
  }
  return law;
}

// The best law of this exponent.
PowerLaw FitExponent(const Curve& curve, double exponent) {
  std::vector<double> powers;
  powers.reserve(curve.logarithms.size());
  for (const double logarithm : curve.logarithms) {
    powers.push_back(Exponential(-exponent * logarithm));
  }
  PowerLaw law = Regress(curve, powers);
  law.exponent = exponent;
  double squares = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const double distance = law.floor + law.scale * powers[i] - curve.losses[i];
    squares += distance * distance;
  }
  law.residual = std::sqrt(squares / static_cast<double>(powers.size()));
  return law;
}

PowerLaw ConstantLaw(std::span<const LossPoint> points) {
  PowerLaw law;
  for (const LossPoint& point : points) law.floor += point.loss;
  law.floor /= static_cast<double>(std::max<std::size_t>(points.size(), 1));
  double squares = 0;
  for (const LossPoint& point : points) {
    squares += (point.loss - law.floor) * (point.loss - law.floor);
    law.reference = std::max(law.reference, point.samples);
  }
  law.residual = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(points.size(), 1)));
  return law;
}

}  // namespace

double PowerLaw::At(double samples) const {
  return floor + scale * Exponential(-exponent * Logarithm(samples / reference));
}

PowerLaw FitPowerLaw(std::span<const LossPoint> points) {
  const Curve curve = CurveOf(points);
  if (curve.losses.size() < kFitPointsMin) return ConstantLaw(points);

  const double low = Logarithm(kExponentMin);
  const double step = (Logarithm(kExponentMax) - low) / (kGrid - 1);
  std::vector<PowerLaw> grid;
  for (int i = 0; i < kGrid; ++i) grid.push_back(FitExponent(curve, Exponential(low + i * step)));
  const auto best = std::ranges::min_element(grid, {}, &PowerLaw::residual);

  const auto index = static_cast<double>(best - grid.begin());
  double left = low + std::max(index - 1, 0.0) * step;
  double right = low + std::min(index + 1, kGrid - 1.0) * step;
  PowerLaw law = *best;
  for (int i = 0; i < kSections; ++i) {
    const double width = (std::numbers::phi - 1) * (right - left);
    const PowerLaw lower = FitExponent(curve, Exponential(right - width));
    const PowerLaw upper = FitExponent(curve, Exponential(left + width));
    if (lower.residual <= upper.residual) {
      right = left + width;
    } else {
      left = right - width;
    }
    law = std::min({law, lower, upper},
                   [](const PowerLaw& a, const PowerLaw& b) { return a.residual < b.residual; });
  }
  return law;
}

}  // namespace tactus::simulator
