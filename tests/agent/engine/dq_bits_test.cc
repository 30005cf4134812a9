#include "agent/engine/combine/dq_bits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::ElementsAre;

// Of the specification's vectors: N = 5 steps, alpha = 0.81, these magnitudes.
constexpr double kAlpha = 0.81;
constexpr std::array<double, 5> kLargest = {8, 4, 2, 1, 0};
const double kRho = std::pow(kAlpha, -(5 - 1) / 2.0);

std::vector<unsigned> BitsOfVector(double kappa, std::size_t steps) {
  std::vector<unsigned> bits;
  for (std::size_t n = 0; n < steps; ++n) {
    bits.push_back(DqBits(kLargest[n], DqSpacing(1 / kappa, kRho, static_cast<double>(n) / 4)));
  }
  return bits;
}

// Section 2h.
TEST(DqPaperTest, BitsAreThoseOfVector1) {
  const std::array<double, 4> levels = {20.9952, 11.664, 6.48, 3.6};
  for (std::size_t n = 0; n < levels.size(); ++n) {
    const double spacing = DqSpacing(1.0 / 4, kRho, static_cast<double>(n) / 4);
    EXPECT_NEAR(kLargest[n] / spacing, levels[n], 1e-12);
    // Equal error: alpha^(N-1-n) nu^2 / s^2 for the unrounded s.
    EXPECT_NEAR(std::pow(kAlpha, 4.0 - static_cast<double>(n)) * spacing * spacing, 0.0625, 1e-12);
  }

  EXPECT_THAT(BitsOfVector(4, 5), ElementsAre(6, 5, 4, 4, 0));
}

TEST(DqPaperTest, RoundedBitsOverspendTheBudgetOfVector4) {
  EXPECT_THAT(BitsOfVector(3.131383, 4), ElementsAre(6, 5, 4, 3));
}

TEST(DqBitsTest, AWholeNumberOfLevelsTakesNoFurtherBit) {
  for (unsigned bits = kDqBitsMin; bits <= kDqBitsMax; ++bits) {
    const double levels = DqLevels(bits);
    for (const double spacing : {1.0, 0.1, 1.0 / 3}) {
      EXPECT_EQ(DqBits(levels * spacing, spacing), bits);
      EXPECT_EQ(DqBits(levels * spacing * (1 + 1e-9), spacing),
                bits == kDqBitsMax ? kDqDense : bits + 1);
    }
  }
}

TEST(DqBitsTest, ZerosTakeNoneAndLittleTakesTheLeast) {
  EXPECT_EQ(DqBits(0, 1), 0u);
  EXPECT_EQ(DqBits(1e-40, 1), kDqBitsMin);
  EXPECT_EQ(DqBits(1e38, 1e-38), kDqDense);
}

// Invariant 5: not fewer as training goes on, nor for larger values.
TEST(DqPropertyTest, BitsGrowWithProgressAndWithMagnitude) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double largest = std::exp(10 * rng.Normal());
    const double last = largest * std::exp(-3 + 2 * rng.Normal());
    const double rho = 1 + 63 * rng.Uniform();
    unsigned before = 0;
    for (int step = 0; step <= 10; ++step) {
      const double spacing = DqSpacing(last, rho, step / 10.0);
      const unsigned bits = DqBits(largest, spacing);
      EXPECT_GE(bits, before) << seed;
      EXPECT_GE(DqBits(1.5 * largest, spacing), bits) << seed;
      before = bits;
    }
  }
}

TEST(DqBitsTest, ASumIsExactWhereEightBitsHoldIt) {
  EXPECT_EQ(DqSumBits(4, 1), 4u);
  EXPECT_EQ(DqSumBits(4, 2), 5u);   // 14 of 15
  EXPECT_EQ(DqSumBits(4, 4), 6u);   // 28 of 31
  EXPECT_EQ(DqSumBits(4, 18), 8u);  // 126 of 127
  EXPECT_EQ(DqSumBits(4, 19), 0u);
  EXPECT_EQ(DqSumBits(2, 127), 8u);
  EXPECT_EQ(DqSumBits(8, 2), 0u);
}

TEST(DqPropertyTest, TheFinestSpacingKeepsToTheBits) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    std::vector<DqUnit> units(1 + rng.Below(20));
    double values = 0;
    for (DqUnit& unit : units) {
      unit = {.length = 1 + rng.Below(4096),
              .largest = rng.Below(5) == 0 ? 0.0f : static_cast<float>(std::exp(3 * rng.Normal()))};
      if (unit.largest > 0) values += static_cast<double>(unit.length);
    }
    const double bits = 2 + 6 * rng.Uniform();
    const auto sum_of = [&](double spacing) {
      double sum = 0;
      for (const DqUnit& unit : units) {
        sum += static_cast<double>(unit.length) * DqBits(unit.largest, spacing);
      }
      return sum;
    };

    const double spacing = DqSpacingFor(units, bits);

    if (values == 0) {
      EXPECT_EQ(spacing, 0) << seed;
    } else {
      EXPECT_LE(sum_of(spacing), bits * values) << seed;
      const float largest = std::ranges::max(units, {}, &DqUnit::largest).largest;
      const bool finest = spacing <= largest * 0x1p-32;  // nobody asks for more
      EXPECT_TRUE(finest || sum_of(spacing * (1 - 1e-9)) > bits * values) << seed;
    }
  }
}

}  // namespace
}  // namespace tactus::engine
