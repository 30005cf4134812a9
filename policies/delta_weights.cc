#include "policies/delta_weights.h"

#include <cmath>

namespace tactus::policies {

DeltaWeights WeightsOfDelta(std::uint32_t steps, const WindowMomentum& momentum) {
  const double beta = momentum.momentum;
  const double tau = steps;
  const double rest = 1 - beta;
  // What of the first gradient before the window arrives in it; and what each of the window's lacks
  // of its whole weight 1 / rest, summed, is that over rest.
  const double ahead = (momentum.nesterov ? beta * beta : beta) * (1 - std::pow(beta, tau)) / rest;
  const double lack2 =
      std::pow(beta, momentum.nesterov ? 4 : 2) * (1 - std::pow(beta, 2 * tau)) / (1 - beta * beta);
  DeltaWeights weights = {.sum = (tau - ahead) / rest,
                          .squares = (tau - 2 * ahead + lack2) / (rest * rest)};
  if (momentum.kept) {
    weights.sum += ahead / rest;
    weights.squares += ahead * ahead / (1 - beta * beta);
  }
  weights.sum *= momentum.weight;
  weights.squares *= momentum.weight * momentum.weight;
  return weights;
}

}  // namespace tactus::policies
