#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace tactus {
namespace {

TEST(RngTest, FirstOutputsAreThoseOfSplitMix64) {
  Rng rng(0);

  EXPECT_EQ(rng.Next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(rng.Next(), 0x6e789e6aa1b965f4ULL);
}

TEST(RngTest, SameSeedGivesTheSameSequence) {
  Rng one(42);
  Rng other(42);

  for (int i = 0; i < 1000; ++i) ASSERT_EQ(one.Next(), other.Next()) << "draw " << i;
}

TEST(RngTest, NeighbouringSeedsGiveDifferentSequences) {
  std::set<std::uint64_t> first;

  for (std::uint64_t seed = 0; seed < 10'000; ++seed) first.insert(Rng(seed).Next());

  EXPECT_EQ(first.size(), 10'000u);
}

TEST(RngTest, RunsInConstantExpressions) {
  constexpr std::uint64_t kFirst = Rng(0).Next();

  static_assert(kFirst == 0xe220a8397b1dcdafULL);
  static_assert(Rng(1).Below(1) == 0);
}

TEST(RngTest, BelowStaysBelowItsBound) {
  Rng rng(7);

  for (const std::uint64_t bound : {1ULL, 2ULL, 3ULL, 10ULL, 1ULL << 33, ~0ULL}) {
    for (int i = 0; i < 1000; ++i) ASSERT_LT(rng.Below(bound), bound);
  }
}

TEST(RngTest, BelowReachesEveryValueAboutEquallyOften) {
  Rng rng(7);
  std::array<int, 10> counts{};

  for (int i = 0; i < 100'000; ++i) ++counts[rng.Below(counts.size())];

  // 10,000 expected, standard deviation 95: 5 of them.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 475);
}

TEST(RngTest, UniformIsInTheHalfOpenUnitInterval) {
  Rng rng(3);
  double sum = 0;

  for (int i = 0; i < 100'000; ++i) {
    const double value = rng.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }

  // Standard error of the mean: 0.289 / sqrt(1e5) = 0.0009.
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(RngTest, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(3);
  double sum = 0;
  double squares = 0;

  for (int i = 0; i < 100'000; ++i) {
    const double value = rng.Normal();
    ASSERT_LE(std::abs(value), 6.0);
    sum += value;
    squares += value * value;
  }

  EXPECT_NEAR(sum / 100'000, 0.0, 0.016);      // 5 standard errors of 0.0032
  EXPECT_NEAR(squares / 100'000, 1.0, 0.023);  // 5 of 0.0045
}

TEST(RngTest, ForkDoesNotAdvanceItsParent) {
  Rng forked(9);
  Rng untouched(9);

  Rng child = forked.Fork("noise");
  child.Next();

  EXPECT_EQ(forked.Next(), untouched.Next());
}

TEST(RngTest, ForksOfOneLabelAreEqualAndOfTwoLabelsDiffer) {
  const Rng parent(9);

  Rng one = parent.Fork("noise");
  Rng same = parent.Fork("noise");
  Rng other = parent.Fork("faults");
  const std::uint64_t first = one.Next();

  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
}

TEST(RngTest, ForksOfManyLabelsAndParentsAreAllDifferent) {
  std::set<std::uint64_t> first;

  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (int label = 0; label < 100; ++label) {
      first.insert(Rng(seed).Fork("worker " + std::to_string(label)).Next());
    }
  }

  EXPECT_EQ(first.size(), 10'000u);
}

TEST(RngTest, DrawsOfAForkAreNotCorrelatedWithItsParent) {
  Rng parent(5);
  Rng child = parent.Fork("");
  double product = 0;

  for (int i = 0; i < 100'000; ++i) {
    product += (parent.Uniform() - 0.5) * (child.Uniform() - 0.5);
  }

  // Each product has standard deviation 1/12; 5 standard errors.
  EXPECT_NEAR(product / 100'000, 0.0, 5.0 / 12 / std::sqrt(100'000));
}

TEST(Mix64Test, MapsZeroToZeroAndNeighboursFarApart) {
  EXPECT_EQ(Mix64(0), 0u);

  for (std::uint64_t x = 1; x < 1000; ++x) {
    const int changed = __builtin_popcountll(Mix64(x) ^ Mix64(x + 1));
    EXPECT_GT(changed, 8) << x;
    EXPECT_LT(changed, 56) << x;
  }
}

}  // namespace
}  // namespace tactus
