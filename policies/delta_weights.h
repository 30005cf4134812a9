// How the change of parameters over a window of local steps weighs the window's gradients.

#pragma once

#include <cstdint>

namespace tactus::policies {

// The momentum within a window of local steps.
struct WindowMomentum {
  double momentum = 0;  // beta, in [0, 1)
  bool nesterov = false;
  bool kept = true;   // from window to window; else it is zero as one begins
  double weight = 1;  // of the newest gradient: 1; of an average of gradients 1 - beta
};

// sum  = W    the change is eta W times the mean gradient, eta the learning rate
// squares = Q and has eta^2 Q times the variance of one step's gradient
struct DeltaWeights {
  double sum = 0;
  double squares = 0;
};

// Of tau steps of heavy ball, v <- beta v + g, x <- x - eta v:
//
//   w_j = (1 - beta^j) / (1 - beta)                              the gradient with j steps to go
//   t_k = beta^(k + 1) (1 - beta^tau) / (1 - beta), k = 0, 1, ...  those before, where it is kept
//   W   = sum_j w_j + sum_k t_k,   Q = sum_j w_j^2 + sum_k t_k^2
//
// With Nesterov's step, x <- x - eta (g + beta v), w_j is that of j + 1, and t_k that of k + 1.
// Without momentum both are tau. Another weight of the newest multiplies all w_j and t_k.
//
// steps  tau >= 1
//
// Source: algebra.
DeltaWeights WeightsOfDelta(std::uint32_t steps, const WindowMomentum& momentum);

}  // namespace tactus::policies
