// Lion in the engine, against a plain loop in float64 over many steps.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "agent/engine/optimizer.h"
#include "base/rng.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kLength = 48;  // three parameters of sixteen
const cuda::SegmentTable kSegments = {{.name = "a", .offset = 0, .length = 48}};

std::vector<float> Normal(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(kLength);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  return values;
}

TEST(LionOptimizerTest, FollowsThePlainLoop) {
  constexpr double kRate = 0.01;
  const LionOptions options{.weight_decay = 0.1};
  const auto device = cuda::OpenDevice("cpu:0").device;
  Optimizer optimizer(options, *device, kSegments);
  std::vector<float> parameters = Normal(1);
  std::vector<double> p(parameters.begin(), parameters.end());
  std::vector<double> m(kLength);

  for (std::uint64_t seed = 2; seed < 22; ++seed) {
    std::vector<float> gradients = Normal(seed);
    optimizer.Step(gradients, {.gradient = 0.5, .learning_rate = kRate}, parameters);
    for (std::size_t i = 0; i < kLength; ++i) {
      const double g = 0.5 * static_cast<double>(gradients[i]);
      const double c = options.beta1 * m[i] + (1 - options.beta1) * g;
      p[i] -= kRate * ((c > 0 ? 1 : -1) + options.weight_decay * p[i]);
      m[i] = options.beta2 * m[i] + (1 - options.beta2) * g;
    }
  }

  for (std::size_t i = 0; i < kLength; ++i) EXPECT_NEAR(parameters[i], p[i], 1e-5) << i;
  EXPECT_EQ(optimizer.State().size(), StateBuffers(options));
}

TEST(LionOptimizerTest, ItsMomentumCanBeForgotten) {
  const auto device = cuda::OpenDevice("cpu:0").device;
  Optimizer optimizer(LionOptions{}, *device, kSegments);
  Optimizer fresh(LionOptions{}, *device, kSegments);
  std::vector<float> parameters = Normal(1);
  std::vector<float> first = Normal(2);
  std::vector<float> second = Normal(3);
  optimizer.Step(first, {.learning_rate = 0.1}, parameters);
  std::vector<float> twin = parameters;

  optimizer.ResetMomentum();
  optimizer.Step(second, {.learning_rate = 0.1}, parameters);
  fresh.Step(second, {.learning_rate = 0.1}, twin);

  EXPECT_EQ(parameters, twin);
  EXPECT_FALSE(optimizer.linear());
}

}  // namespace
}  // namespace tactus::engine
