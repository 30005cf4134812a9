// What a batch is worth: samples that teach as much as those of base batches would.

#pragma once

#include <optional>

#include "policies/plan.h"

namespace tactus::policies {

// What the worth of a batch depends on beside its size.
struct BatchWorth {
  LearningRateRule rule = LearningRateRule::kConstant;
  double base_batch = 32;               // [samples] B_0 > 0: the learning rate was chosen for it
  std::optional<double> noise_scale{};  // [samples] phi >= 0; empty while unknown
};

// Samples of base batches whose updates lower the loss as much as one update of `batch` samples.
//
//   U = B_0 q,   q = 2 m - m^2 / r,   m = 1, S, sqrt(S) or r as the rule says
//   S = B / B_0,   r = S StatisticalEfficiency, AdaScale's gain
//
// q follows from the quadratic model of the loss, in which an update at the rate m eta of a batch
// with best gain r lowers it by 2 m - m^2 / r of what one of the base batch lowers it: it is
// largest, r, at m = r (AdaScale), 2 - 1/r at the constant rate, and falls below 0 where the rate
// is more than twice the best one. The root of S is the rule for steps that have a length of their
// own, as those of adam have: one that is longer than the best wastes its length, and teaches what
// the best would, so that m = min(sqrt(S), r) there. (Where q fell below 0 in the first rounds of a
// small transformer, whose noise scale is next to nothing, every other plan looked sixty times
// better than the one in force.) While the noise scale is unknown q = min(S, 1): a larger batch
// is worth no more than the base batch.
//
// batch  [samples]  B > 0
// Returns U in [kWorthMin B_0 min(S, 1), B]: the least keeps ratios defined where a rate is too
// high.
//
// Source: design, from the model of [mccandlish] section 2.2; memory, unverified.
double UsefulSamples(double batch, const BatchWorth& worth);

inline constexpr double kWorthMin = 0.01;

// How many times as far as one of the base batch an update of `batch` samples goes: m above, 1
// where that depends on a noise scale that is unknown.
double GainOf(double batch, const BatchWorth& worth);

}  // namespace tactus::policies
