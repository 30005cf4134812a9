#include "cuda/ops/two_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kTerms = 33;        // a thread's at most
constexpr long double kBound = 0x1p-38L;  // as the header derives

struct Sums {
  TwoFloat products{};
  TwoFloat squares{};
  long double exact_products = 0;  // within 2^-58 of its magnitudes
  long double exact_squares = 0;
  long double magnitudes = 0;
};

Sums SumsOf(const std::vector<float>& a, const std::vector<float>& b) {
  Sums sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double product = static_cast<long double>(a[i]) * static_cast<long double>(b[i]);
    sums.products.Add(a[i], b[i]);
    sums.squares.Add(a[i], a[i]);
    sums.exact_products += product;
    sums.exact_squares += static_cast<long double>(a[i]) * static_cast<long double>(a[i]);
    sums.magnitudes += std::abs(product);
  }
  return sums;
}

TEST(TwoFloatTest, IsWithinItsBoundOfTheSum) {
  Rng rng(1);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<float> a(kTerms);
    std::vector<float> b(kTerms);
    for (std::size_t k = 0; k < kTerms; ++k) {
      // Of one magnitude, of falling or of rising ones, or of any.
      const int of_case[] = {0, -static_cast<int>(k) / 2, static_cast<int>(k) / 2,
                             static_cast<int>(rng.Below(24))};
      a[k] = static_cast<float>(std::ldexp(rng.Normal(), of_case[i % 4]));
      b[k] = static_cast<float>(std::ldexp(rng.Normal(), of_case[i % 4]));
    }

    const Sums sums = SumsOf(a, b);

    ASSERT_TRUE(sums.squares.HoldsSquares());
    ASSERT_NEAR(sums.products.value(), static_cast<double>(sums.exact_products),
                static_cast<double>(kBound * sums.magnitudes));
    ASSERT_NEAR(sums.squares.value(), static_cast<double>(sums.exact_squares),
                static_cast<double>(kBound * sums.exact_squares));
  }
}

TEST(TwoFloatTest, KeepsWhatOneFloatLoses) {
  TwoFloat sum;
  sum.Add(1, 1);
  for (int i = 0; i < 32; ++i) sum.Add(0x1p-15f, 0x1p-15f);

  EXPECT_EQ(sum.value(), 1 + 32 * 0x1p-30);
}

TEST(TwoFloatTest, SaysWhereItsRangeEnds) {
  const auto holds = [](float x, std::size_t count) {
    std::vector<float> all(kTerms);
    std::fill_n(all.begin(), count, x);
    return SumsOf(all, all).squares.HoldsSquares();
  };

  for (const std::size_t count : {std::size_t{1}, kTerms}) {
    for (const float x : {0.0f, -0.0f, 0x1p-50f, 1.0f, 1e18f}) EXPECT_TRUE(holds(x, count)) << x;
    for (const float x : {1e-45f, 1e-30f, 0x1p-54f, 2e19f, std::numeric_limits<float>::max(),
                          HUGE_VALF, std::nanf("")}) {
      EXPECT_FALSE(holds(x, count)) << x;
    }
  }
  EXPECT_FALSE(holds(1e19f, kTerms));  // each square is finite
}

TEST(Float64SumTest, IsExactWherePowersOfTwoAre) {
  Float64Sum sum;
  sum.Add(std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(sum.value(), 0x1p-298);
  sum.Add(0x1p127f, -0x1p127f);
  EXPECT_EQ(sum.value(), -0x1p254);
}

}  // namespace
}  // namespace tactus::cuda
