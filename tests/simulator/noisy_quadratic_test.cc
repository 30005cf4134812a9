#include "simulator/noisy_quadratic.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

engine::Batch BatchOf(std::uint64_t first, std::uint64_t count, std::uint64_t epoch = 0) {
  engine::Batch batch{.epoch = epoch};
  batch.indices.resize(count);
  std::iota(batch.indices.begin(), batch.indices.end(), first);
  return batch;
}

std::vector<float> Start(const NoisyQuadratic& learner, std::uint64_t seed = 1) {
  std::vector<float> parameters(cuda::FlatLength(learner.segments()));
  learner.Initialise(seed, parameters);
  return parameters;
}

std::vector<float> GradientOf(NoisyQuadratic& learner, const std::vector<float>& parameters,
                              const engine::Batch& batch) {
  std::vector<float> gradients(parameters.size());
  learner.ForwardBackward(batch, parameters, gradients);
  return gradients;
}

// Places of the parameters in the flat buffer.
std::vector<std::size_t> Positions(const NoisyQuadratic& learner) {
  std::vector<std::size_t> positions;
  for (const cuda::Segment& segment : learner.segments()) {
    for (std::size_t i = 0; i < segment.length; ++i) positions.push_back(segment.offset + i);
  }
  return positions;
}

TEST(NoisyQuadraticTest, StartsAtTheGivenLoss) {
  NoisyQuadratic learner({.initial_loss = 5, .loss_floor = 2});

  EXPECT_NEAR(learner.Validate(Start(learner, 1)).value(), 5, 20 * kEpsilon);
  EXPECT_NEAR(learner.Validate(Start(learner, 2)).value(), 5, 20 * kEpsilon);
  EXPECT_NE(Start(learner, 1), Start(learner, 2));
  EXPECT_EQ(Start(learner, 1), Start(learner, 1));
}

TEST(NoisyQuadraticTest, EigenvaluesReachFromOneOverTheConditionToOne) {
  const NoisyQuadratic learner({.dimension = 5, .condition = 10000});

  const std::span<const float> h = learner.eigenvalues();

  ASSERT_EQ(h.size(), 5);
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_NEAR(h[k] / std::pow(10.0, static_cast<double>(k) - 4), 1, kEpsilon) << k;
  }
  EXPECT_EQ(NoisyQuadratic({.dimension = 1}).eigenvalues()[0], 1);
}

TEST(NoisyQuadraticTest, TheGradientIsTheDerivativeOfTheExpectedLoss) {
  NoisyQuadratic learner({.dimension = 40, .segments = 3, .gradient_noise = 0});
  std::vector<float> parameters = Start(learner);
  const std::vector<float> gradients = GradientOf(learner, parameters, BatchOf(0, 4));

  // A central difference is exact for a quadratic, whatever its width; what is left is rounding.
  for (const std::size_t i : Positions(learner)) {
    const float x = parameters[i];
    parameters[i] = x + 0.5F;
    const double above = learner.Validate(parameters).value();
    const double step = parameters[i];
    parameters[i] = x - 0.5F;
    const double below = learner.Validate(parameters).value();
    const double slope = (above - below) / (step - parameters[i]);
    parameters[i] = x;
    EXPECT_NEAR(gradients[i], 4 * slope, 4 * kEpsilon * std::abs(slope) + 1e-13) << i;
  }
}

TEST(NoisyQuadraticTest, LossAndGradientAreAddedUpOverTheSamples) {
  NoisyQuadratic learner({.initial_loss = 3, .gradient_noise = 0});
  const std::vector<float> parameters = Start(learner);
  std::vector<float> once(parameters.size());
  std::vector<float> twice(parameters.size());

  const double loss = learner.ForwardBackward(BatchOf(0, 8), parameters, once);
  learner.ForwardBackward(BatchOf(0, 4), parameters, twice);
  learner.ForwardBackward(BatchOf(4, 4), parameters, twice);

  EXPECT_NEAR(loss, 24, 24 * 20 * kEpsilon);
  EXPECT_EQ(once, twice);  // doubling is exact
}

TEST(NoisyQuadraticTest, WithoutNoiseEachParameterDecaysByItsEigenvalue) {
  NoisyQuadratic learner({.dimension = 32, .condition = 50, .gradient_noise = 0});
  std::vector<float> parameters = Start(learner);
  const std::vector<float> start = parameters;
  constexpr int kSteps = 100;
  constexpr float kRate = 0.5F;

  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradients = GradientOf(learner, parameters, BatchOf(0, 1));
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= kRate * gradients[i];
  }

  for (std::size_t k = 0; k < 32; ++k) {
    const double h = learner.eigenvalues()[k];
    const double expected = start[k] * std::pow(1 - kRate * h, kSteps);
    // A step rounds the gradient and the difference, each at most by an epsilon of x.
    EXPECT_NEAR(parameters[k], expected, 2 * kSteps * kEpsilon * std::abs(expected)) << k;
  }
}

TEST(NoisyQuadraticTest, TheNoiseOfABatchsMeanHasTheGivenTraceOverItsSize) {
  constexpr double kTrace = 3;
  constexpr std::uint64_t kDraws = 20000;
  NoisyQuadratic learner({.gradient_noise = kTrace});
  const std::vector<float> minimum(16);

  for (const std::uint64_t count : {1, 4, 25}) {
    double sum = 0;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      for (const float noise : GradientOf(learner, minimum, BatchOf(draw * count, count))) {
        const double mean = noise / static_cast<double>(count);
        sum += mean * mean;
      }
    }

    // A squared normal has the variance 2 sigma^4; there are 16 in a draw.
    const double expected = kTrace / static_cast<double>(count);
    const double deviation = expected * std::sqrt(2.0 / (16.0 * kDraws));
    EXPECT_NEAR(sum / kDraws, expected, 5 * deviation) << count;
  }
}

TEST(NoisyQuadraticTest, DifferentBatchesHaveIndependentNoise) {
  constexpr std::uint64_t kDraws = 5000;
  NoisyQuadratic learner({.gradient_noise = 16});
  const std::vector<float> minimum(16);
  double same_first = 0;
  double next_first = 0;
  double next_epoch = 0;

  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto noise = GradientOf(learner, minimum, BatchOf(3 * draw, 1));
    const auto longer = GradientOf(learner, minimum, BatchOf(3 * draw, 4));
    const auto next = GradientOf(learner, minimum, BatchOf(3 * draw + 1, 1));
    const auto again = GradientOf(learner, minimum, BatchOf(3 * draw, 1, 1));
    for (std::size_t k = 0; k < 16; ++k) {
      same_first += noise[k] * longer[k] / 2;
      next_first += noise[k] * next[k];
      next_epoch += noise[k] * again[k];
    }
  }

  const double bound = 5 * std::sqrt(16.0 * kDraws);  // five deviations of a sum of products
  EXPECT_LT(std::abs(same_first), bound);
  EXPECT_LT(std::abs(next_first), bound);
  EXPECT_LT(std::abs(next_epoch), bound);
}

TEST(NoisyQuadraticTest, TheLossOfABatchVariesAsGiven) {
  constexpr std::uint64_t kDraws = 20000;
  NoisyQuadratic learner({.loss_floor = 1, .loss_noise = 0.5});
  const std::vector<float> minimum(16);
  std::vector<float> gradients(16);
  double sum = 0;
  double squares = 0;

  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const double mean = learner.ForwardBackward(BatchOf(9 * draw, 9), minimum, gradients) / 9;
    sum += mean - 1;
    squares += (mean - 1) * (mean - 1);
  }

  const double variance = 0.25 / 9;
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(squares / kDraws, variance, 5 * variance * std::sqrt(2.0 / kDraws));
}

// What SGD comes to, by the closed form of the header, and how far the mean of `steps` steps may
// stray from it: x_k is an autoregression with the factor r = 1 - eta h, its square one with r^2.
struct Stationary {
  double loss = 0;
  double variance = 0;
};

Stationary StationaryOf(const NoisyQuadratic& learner, double sigma2_over_n, double rate,
                        double steps) {
  Stationary result;
  for (const double h : learner.eigenvalues()) {
    const double loss = rate * sigma2_over_n / (2 * (2 - rate * h));
    const double r2 = (1 - rate * h) * (1 - rate * h);
    result.loss += loss;
    result.variance += 2 * loss * loss * (1 + r2) / (1 - r2) / steps;
  }
  return result;
}

TEST(NoisyQuadraticTest, SgdSettlesAtTheLossThatTheNoiseLeaves) {
  constexpr float kRate = 0.5F;
  constexpr std::uint64_t kSteps = 40000;
  constexpr std::uint64_t kCount = 8;
  NoisyQuadratic learner({.condition = 10, .initial_loss = 1, .gradient_noise = 4});
  std::vector<float> parameters = Start(learner);
  double sum = 0;

  for (std::uint64_t step = 0; step < 200 + kSteps; ++step) {  // 0.95^200 is 4e-5
    const auto gradients = GradientOf(learner, parameters, BatchOf(step * kCount, kCount));
    for (std::size_t i = 0; i < 16; ++i) parameters[i] -= kRate / kCount * gradients[i];
    if (step >= 200) sum += learner.Validate(parameters).value();
  }

  const Stationary expected = StationaryOf(learner, 4.0 / 16 / kCount, kRate, kSteps);
  EXPECT_NEAR(sum / kSteps, expected.loss, 5 * std::sqrt(expected.variance));
  EXPECT_LT(5 * std::sqrt(expected.variance), 0.05 * expected.loss);  // the bound means something
}

TEST(NoisyQuadraticTest, EqualCallsGiveEqualBitsWhateverCameBefore) {
  NoisyQuadratic learner({.loss_noise = 1, .seed = 7});
  NoisyQuadratic other({.loss_noise = 1, .seed = 7});
  NoisyQuadratic stranger({.loss_noise = 1, .seed = 8});
  const std::vector<float> parameters = Start(learner);
  std::vector<float> gradients(16);
  other.ForwardBackward(BatchOf(5, 3), parameters, gradients);

  EXPECT_EQ(GradientOf(learner, parameters, BatchOf(2, 3)),
            GradientOf(other, parameters, BatchOf(2, 3)));
  EXPECT_EQ(learner.ForwardBackward(BatchOf(2, 3), parameters, gradients),
            other.ForwardBackward(BatchOf(2, 3), parameters, gradients));
  EXPECT_NE(GradientOf(learner, parameters, BatchOf(2, 3)),
            GradientOf(stranger, parameters, BatchOf(2, 3)));
}

TEST(NoisyQuadraticTest, SegmentsShareTheDimensionsAndLeaveThePaddingAlone) {
  NoisyQuadratic learner({.dimension = 50, .segments = 4});
  const std::vector<float> parameters = Start(learner);
  const std::vector<float> gradients = GradientOf(learner, parameters, BatchOf(0, 1));

  EXPECT_EQ(learner.segments().size(), 4);
  const std::vector<std::size_t> positions = Positions(learner);
  EXPECT_EQ(positions.size(), 50);
  std::vector<bool> used(parameters.size());
  for (const std::size_t i : positions) {
    EXPECT_FALSE(used[i]) << i;
    used[i] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    EXPECT_EQ(used[i], parameters[i] != 0) << i;
    EXPECT_EQ(used[i], gradients[i] != 0) << i;
  }
}

}  // namespace
}  // namespace tactus::simulator
