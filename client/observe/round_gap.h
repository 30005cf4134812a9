// How long rounds took that are not on record: the one estimate of it. Pure.

#pragma once

#include <cstdint>

namespace tactus::client {

// A round on record.
struct RoundLength {
  std::uint64_t round = 0;
  double seconds = 0;  // what is none counts as 0
};

struct RoundGap {
  std::uint64_t rounds = 0;
  double seconds = 0;  // finite, >= 0
};

// What lies between two: as if each missing round had had the mean length of the two.
RoundGap GapBetween(const RoundLength& before, const RoundLength& after);

// `seconds`, or 0 where that is no length.
double SaneSeconds(double seconds);

}  // namespace tactus::client
