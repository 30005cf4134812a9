// Weights of samples that stand for others, held below a bound.

#pragma once

#include <span>

namespace tactus::subset {

// What weights have above `most` goes to those below it, in proportion to what they are:
//
//   w_j = min(most, s w_j),  s >= 1 so that the sum stays
//
// so that none becomes less but those that are cut, and equal ones stay equal. Where the mean is
// above `most`, all become the mean.
//
// weights  [n]  above 0; in any unit
// most     [1]  above 0, in the same unit
//
// Source: spec of the subset, hyperparameters: the bound. Differs: what becomes of the rest is our
// own, as the spec has nothing of it.
void HoldBelow(std::span<double> weights, double most);

// How many equal weights are as even: (sum w)^2 / sum w^2, in [1, n]. The noise of a mean by these
// weights, of things that vary alike, is that of so many. 0 of none.
// Source: Kish's effective sample size; memory, unverified.
double EffectiveCount(std::span<const float> weights);

}  // namespace tactus::subset
