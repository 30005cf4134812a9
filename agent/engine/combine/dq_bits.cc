#include "agent/engine/combine/dq_bits.h"

#include <algorithm>
#include <cmath>

namespace tactus::engine {

double DqSpacing(double last, double rho, double progress) {
  return last * std::pow(rho, 1 - progress);
}

// No logarithm, which libraries round as they like: the least k with 2^k >= 1 + y, where what y is
// above by its own rounding does not count.
unsigned DqBits(double largest, double spacing) {
  constexpr double kRounding = 1 + 7e-13;  // 2^1e-12
  if (!(largest > 0)) return 0;
  const double y = largest / spacing;
  unsigned bits = kDqBitsMin;
  while (bits <= kDqBitsMax && static_cast<double>(1u << (bits - 1)) * kRounding < 1 + y) ++bits;
  return bits <= kDqBitsMax ? bits : kDqDense;
}

unsigned DqSumBits(unsigned bits, unsigned members) {
  for (unsigned wide = bits; wide <= kDqBitsMax; ++wide) {
    if (DqLevels(wide) >= members * DqLevels(bits)) return wide;
  }
  return 0;
}

// Above the threshold by a little, so that it stays there when it is scaled and scaled back.
double DqSpacingFor(std::span<const DqUnit> units, double bits) {
  constexpr int kHalvings = 48;
  constexpr double kAbove = 1 + 1e-12;
  double values = 0;
  double coarse = 0;
  for (const DqUnit& unit : units) {
    if (unit.largest > 0) values += static_cast<double>(unit.length);
    coarse = std::max(coarse, static_cast<double>(unit.largest));
  }
  const auto fits = [&](double spacing) {
    double sum = 0;
    for (const DqUnit& unit : units) {
      sum += static_cast<double>(unit.length) * DqBits(unit.largest, spacing);
    }
    return sum <= bits * values;
  };
  double fine = coarse * 0x1p-32;
  if (coarse == 0 || fits(fine)) return fine;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(fine * coarse);
    (fits(middle) ? coarse : fine) = middle;
  }
  return coarse * kAbove;
}

}  // namespace tactus::engine
