#include "policies/figures.h"

#include <cmath>
#include <cstdio>

namespace tactus::policies {

std::string Figure(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4;
  char text[400];  // 309 digits before the point at most
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string Percent(double fraction) { return Figure(fraction * 100) + " %"; }

}  // namespace tactus::policies
