// How long a round would last under another plan, and how much it would bring.

#pragma once

#include <cstdint>
#include <vector>

#include "policies/observations.h"
#include "policies/plan.h"
#include "policies/useful_samples.h"

namespace tactus::policies {

// A round as it is expected. An update is a round, or one local step of a periodic one.
struct RoundForecast {
  double seconds = 0;  // of the round
  double updates = 1;  // of the round
  double samples = 0;  // of an update, over all members
};

// What a round of the plan lasts and brings, from measured speeds and transfer:
//
//   every step   seconds = s + D           samples = sum b_i
//   periodic     seconds = tau s + D       samples = sum b_i, tau updates
//   lsgd         seconds = tau h + D       samples = sum b_i, tau updates
//   delayed      the mean of PredictDelayedPace over kForecastRounds rounds
//
// b_i  [samples]  of a step;  v_i  [samples/s]  speeds
// s    [s]  the longest step, max_i b_i / v_i;  h  [s]  m / sum_i v_i / b_i, of the m members with
//           samples: they share out tau m steps as they come to them;  D  [s]  transfer of a round
//
// REQUIRES: speeds > 0, one size a rank. transfer >= 0.
//
// Source: design.
RoundForecast Forecast(const Plan& plan, const std::vector<double>& speeds, double transfer);

// At the speeds seen. REQUIRES: seen.SpeedsKnown().
RoundForecast Forecast(const Plan& plan, const Observations& seen, double transfer);

// What rounds of the forecast teach in a second. [useful samples/s]
//
//   updates U(samples) / seconds   U: UsefulSamples
//
// REQUIRES: seconds > 0, samples > 0.
double UsefulRate(const RoundForecast& round, const BatchWorth& worth);

inline constexpr std::uint32_t kForecastRounds = 20;

// Seconds of one update under the plan's synchronization with a step of `step` seconds:
//
//   step + D          every step
//   step + D / tau    periodic
//
// D [s] transfer of a round.
double UpdateSeconds(const Plan& plan, double step, double transfer);

}  // namespace tactus::policies
