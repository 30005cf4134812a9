#include "simulator/elementary.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

// The libm's own error is below 1 ulp.
constexpr double kTolerance = 5 * std::numeric_limits<double>::epsilon();

TEST(ElementaryTest, ExponentialIsThatOfTheLibraryToItsLastBits) {
  for (double x = -700; x <= 700; x += 0.37) {
    EXPECT_NEAR(Exponential(x) / std::exp(x), 1, kTolerance) << x;
  }
  EXPECT_EQ(Exponential(0), 1);
}

TEST(ElementaryTest, ExponentialIsDefinedEverywhere) {
  const double infinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(Exponential(-infinity), 0);
  EXPECT_EQ(Exponential(-1000), 0);
  EXPECT_EQ(Exponential(infinity), infinity);
  EXPECT_EQ(Exponential(1000), infinity);
  EXPECT_TRUE(std::isnan(Exponential(std::numeric_limits<double>::quiet_NaN())));
}

TEST(ElementaryTest, LogarithmIsThatOfTheLibraryToItsLastBits) {
  for (double x = 1e-300; x < 1e300; x *= 1.7) {
    EXPECT_NEAR(Logarithm(x) / std::log(x), 1, kTolerance) << x;
  }
  for (double x = 0.9; x < 1.1; x += 0.0007) {
    EXPECT_NEAR(Logarithm(x) / std::log(x), 1, kTolerance) << x;
  }
  EXPECT_EQ(Logarithm(1), 0);
}

}  // namespace
}  // namespace tactus::simulator
