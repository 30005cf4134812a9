#include "client/observe/round_gap.h"

#include <algorithm>
#include <cmath>

namespace tactus::client {
namespace {

// What a coordinator says is outside input: so long may a round, or a gap, be at most. With as many
// rounds as there may be on record a sum of nanoseconds stays below 2^63.
constexpr double kSecondsMax = 1e4;

}  // namespace

double SaneSeconds(double seconds) {
  return std::isfinite(seconds) && seconds > 0 ? std::min(seconds, kSecondsMax) : 0;
}

RoundGap GapBetween(const RoundLength& before, const RoundLength& after) {
  RoundGap gap{.rounds = after.round - std::min(after.round, before.round + 1)};
  const double mean = (SaneSeconds(before.seconds) + SaneSeconds(after.seconds)) / 2;
  gap.seconds = SaneSeconds(mean * static_cast<double>(gap.rounds));
  return gap;
}

}  // namespace tactus::client
