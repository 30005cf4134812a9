#include "agent/model/initial_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tactus::model {
namespace {

TEST(NormalNumbersTest, HaveTheMomentsOfTheNormalDistribution) {
  constexpr int kDraws = 200'000;
  NormalNumbers numbers(Rng(3));
  double sum = 0;
  double square = 0;
  double fourth = 0;
  int tail = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = numbers.Next();
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    tail += std::abs(x) > 3 ? 1 : 0;
  }

  // Five standard deviations of each estimate.
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(square / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
  EXPECT_NEAR(tail, 0.0026998 * kDraws, 5 * std::sqrt(0.0027 * kDraws));
}

TEST(NormalNumbersTest, FollowTheirDefinitionWithTheLibraryLogarithm) {
  NormalNumbers numbers(Rng(9));
  Rng rng(9);
  for (int pair = 0; pair < 1000; ++pair) {
    double u = 0;
    double v = 0;
    double square = 0;
    do {
      u = 2 * rng.Uniform() - 1;
      v = 2 * rng.Uniform() - 1;
      square = u * u + v * v;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);

    EXPECT_NEAR(numbers.Next(), u * factor, 1e-13);
    EXPECT_NEAR(numbers.Next(), v * factor, 1e-13);
  }
}

TEST(FillInitialTest, DoesWhatTheBlueprintSays) {
  std::vector<float> values(1000);

  FillInitial({.initial = Initial::kOne}, Rng(1), values);
  EXPECT_EQ(values, std::vector<float>(1000, 1.0F));

  FillInitial({.initial = Initial::kZero}, Rng(1), values);
  EXPECT_EQ(values, std::vector<float>(1000, 0.0F));

  FillInitial({.initial = Initial::kUniform, .scale = 0.5}, Rng(1), values);
  double low = 1;
  double high = -1;
  for (const float value : values) {
    low = std::min<double>(low, value);
    high = std::max<double>(high, value);
  }
  EXPECT_GE(low, -0.5);
  EXPECT_LT(low, -0.48);
  EXPECT_LT(high, 0.5);
  EXPECT_GT(high, 0.48);
}

}  // namespace
}  // namespace tactus::model
