#include "simulator/elementary.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tactus::simulator {
namespace {

// ln 2 in two parts: k times the first is exact for |k| < 2^11, as its last 21 bits are zero.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace

double Exponential(double x) {
  if (std::isnan(x)) return x;
  if (x < -745) return 0;
  if (x > 710) return std::numeric_limits<double>::infinity();
  const double k = std::floor(x * std::numbers::log2e + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int n = 13; n >= 1; --n) sum = 1 + sum * r / n;  // |r| <= 0.35 leaves r^14 / 14! < 5e-18
  return std::ldexp(sum, static_cast<int>(k));
}

double Logarithm(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 1 / std::numbers::sqrt2) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  double sum = 0;
  for (int k = 11; k >= 0; --k) sum = sum * (s * s) + 1.0 / (2 * k + 1);  // |s| <= 0.172
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

}  // namespace tactus::simulator
