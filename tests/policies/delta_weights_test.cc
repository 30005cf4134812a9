#include "policies/delta_weights.h"

#include <gtest/gtest.h>

#include <vector>

namespace tactus::policies {
namespace {

constexpr int kStepsBefore = 2000;  // of which momentum of 0.99 keeps 2e-9, less than the tolerance

// By how much the change over the last `steps` of all steps falls for a gradient of 1 in one step.
double WeightOf(int at, std::uint32_t steps, const WindowMomentum& momentum) {
  const int start = kStepsBefore;
  const int end = start + static_cast<int>(steps);
  double velocity = 0;
  double change = 0;
  for (int step = 0; step < end; ++step) {
    const double gradient = step == at ? 1 : 0;
    if (step == start && !momentum.kept) velocity = 0;
    velocity = momentum.momentum * velocity + gradient;
    if (step < start) continue;
    change += momentum.nesterov ? gradient + momentum.momentum * velocity : velocity;
  }
  return change;
}

DeltaWeights ByHand(std::uint32_t steps, const WindowMomentum& momentum) {
  DeltaWeights weights;
  for (int at = 0; at < kStepsBefore + static_cast<int>(steps); ++at) {
    const double weight = WeightOf(at, steps, momentum);
    weights.sum += weight;
    weights.squares += weight * weight;
  }
  return weights;
}

TEST(DeltaWeightsTest, AreThoseOfTheStepsOneByOne) {
  for (const std::uint32_t steps : {1u, 2u, 7u, 48u}) {
    for (const double beta : {0.0, 0.5, 0.9, 0.99}) {
      for (const bool nesterov : {false, true}) {
        for (const bool kept : {false, true}) {
          const WindowMomentum momentum = {.momentum = beta, .nesterov = nesterov, .kept = kept};

          const DeltaWeights weights = WeightsOfDelta(steps, momentum);

          const DeltaWeights expected = ByHand(steps, momentum);
          EXPECT_NEAR(weights.sum, expected.sum, 1e-8 * expected.sum) << steps << " " << beta;
          EXPECT_NEAR(weights.squares, expected.squares, 1e-8 * expected.squares)
              << steps << " " << beta << " " << nesterov << " " << kept;
        }
      }
    }
  }
}

// Adam's first moment.
TEST(DeltaWeightsTest, OfAnAverageEachGradientCountsOnce) {
  const DeltaWeights average = WeightsOfDelta(20, {.momentum = 0.9, .weight = 0.1});
  const DeltaWeights sum = WeightsOfDelta(20, {.momentum = 0.9});

  EXPECT_NEAR(average.sum, 20, 1e-9);
  EXPECT_NEAR(average.squares, sum.squares / 100, 1e-9);
}

// Kept momentum moves the parameters by the whole rate, eta / (1 - beta), in the long run.
TEST(DeltaWeightsTest, KeptMomentumGivesEachGradientItsWholeWeight) {
  EXPECT_NEAR(WeightsOfDelta(20, {.momentum = 0.9}).sum, 200, 1e-9);
  EXPECT_LT(WeightsOfDelta(20, {.momentum = 0.9, .kept = false}).sum, 130);
}

}  // namespace
}  // namespace tactus::policies
